"""The only code that formats: reports as text, pages and cards for people, as JSON and JUnit for programs."""
