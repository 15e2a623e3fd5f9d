"""How `one_layer.supermask` finds the weights that survive: `counting` has the k largest, without a sort."""
