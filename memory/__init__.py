"""Part of Remora: what is remembered of people, groups and events."""
