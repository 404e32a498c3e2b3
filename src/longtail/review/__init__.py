"""The review desk: texts wait in queues, people decide on their labels, and models learn from the decisions.

store       opens a store: a SQLite file or a PostgreSQL database     schema       its tables
adding      texts into queues                                         documents    texts of PDF, Word, EPUB and HTML
desk        claim a text, decide on it, skip it, undo                 history      what people decided last
agreement   Krippendorff's alpha                                      statistics   acceptance, effort, agreement, drift
source      decisions as a data set                                   export       decisions as files
"""
