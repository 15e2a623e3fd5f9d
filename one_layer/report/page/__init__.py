"""The page of a report: one HTML file with its style.

`words` has the sentences of the first screen, `cells` fills table.html with tables, and `document` page.html with all of it.
"""
