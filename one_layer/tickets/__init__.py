"""Tickets: a whole trained model, with its text assets, in one safetensors file.

`save`, `load` and `load_many` write and read the file, `make` and `from_run` make the record `Ticket`, `variables` gives the
network's variables back. docs/ticket-format.md describes the file.
"""

from one_layer.tickets.ticket import Ticket, export, from_run, load, load_many, make, restore_ticket, save, variables

__all__ = ["Ticket", "export", "from_run", "load", "load_many", "make", "restore_ticket", "save", "variables"]
