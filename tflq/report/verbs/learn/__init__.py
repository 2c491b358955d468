"""What was learned of a device, as a report and a document."""
