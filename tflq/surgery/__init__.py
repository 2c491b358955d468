"""From model to model: parts cut out, tensors tapped, operators edited and cropped."""
