"""The model as a picture: boxes in layers, coloured by what a page is about, and a panel of facts for each operator.

`network` reads boxes and arrows from a model, `layered` places them, `colouring` defines the colours, `panels` lists
the facts about each operator, and `drawing` writes one SVG. The pages' script only scrolls, searches and shows panels:
the picture and every table need no script.
"""
