"""The worker: one process that runs the cells of one session.

The main thread runs cells; a reader thread takes frames from the host the whole
time, so an interrupt, a late reply or a shutdown is read whatever a cell does.
Nothing here needs more than the standard library, and nothing heavy is imported
before a cell asks for it (asyncio, traceback, json, threading).
"""
