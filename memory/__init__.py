"""Part of Remora: the memories of people, groups and events."""
