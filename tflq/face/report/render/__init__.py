"""Renderers of reports: text for a terminal, an HTML page, a card for a notebook."""
