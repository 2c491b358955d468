"""Windows, volumes, axes and broadcasting: where elements lie, apart from what is computed of them."""
