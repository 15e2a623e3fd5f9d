"""The page of a report: one HTML file with its style.

`words` has the sentences of the first screen, `cells` the HTML of tables, and `document` joins them.
"""
