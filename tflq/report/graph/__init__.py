"""The model as a picture: boxes in layers, coloured by what a page is about, and a panel of facts for each operator.

`network` reads boxes and arrows from a model, `layered` places them, `colouring` says what a colour means, `panels`
tells all that is known of an operator, and `drawing` makes one SVG of it. The pages' script only scrolls, searches and
shows panels: without it the picture and every table are still there.
"""
