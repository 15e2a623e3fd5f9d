"""Tickets: a whole trained model, with its text assets, in one safetensors file.

`make` and `from_run` make the record `Ticket`; `save` and `load` write and read its file; `variables` gives the network's
variables back. `export` and `restore_ticket` do all steps for a trained model. docs/ticket-format.md describes the file.
"""

from one_layer.tickets.content import Ticket
from one_layer.tickets.ticket import export, from_run, load, make, restore_ticket, save, variables

__all__ = ["Ticket", "export", "from_run", "load", "make", "restore_ticket", "save", "variables"]
