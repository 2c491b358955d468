"""The public API over files, plans and profiles: load, save and the drop-in Interpreter."""
