"""The model as a picture: boxes in layers, coloured by what a page is about, and a panel of facts for each operator.

`drawing` reads boxes and arrows from a model, places them in layers and writes one SVG; `colouring` defines the colours
and lists the facts about each operator. The pages' script only scrolls, searches and shows panels:
the picture and every table need no script.
"""
