"""Part of Remora: the pipeline, the commands and the command line."""
