"""Pages that need no network: one layout and one style sheet, tables, and charts as inline SVG; light and dark."""
