"""Programs compiled for accelerators that are not here: what they need there, and a prediction of their time.

`chips` says what each accelerator can do, `programs` compiles a training step for it, `hlo` reads the compiled text, `contents`
counts in it what costs time (transfers, products, kernels, loops), and `prediction` makes a time of these.
"""
