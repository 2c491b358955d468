"""The faces of tflq: commands, reports and pages, and the plugin for pytest."""
