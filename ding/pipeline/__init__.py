"""Pipeline: the loop of a run and its parts, put together from a config.

    Source.next() -> samples      a collector here, many elsewhere
    Batches.after(samples)        draws from a buffer, or what came, or a mixture of buffers
    relabel: batch -> batch       a chain of functions on single steps
    Learning.train(batch)         updates, priorities back to the buffer, statistics merged
    Evaluation                    when to evaluate, the best policy, whether to stop

The parallel run calls the same parts from elsewhere.
"""
