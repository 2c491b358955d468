"""Where files, plans and profiles meet: load, save and the drop-in Interpreter."""
