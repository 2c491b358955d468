"""The only code that formats: what was found, as text for people, as JSON and JUnit for programs."""
