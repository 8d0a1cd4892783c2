"""The steps of a pipeline, each told once: what it takes, makes and does (part: top).

Commands, tasks of Kubeflow, components of TFX and the run without TFX are made from them. A module
has one step, `STEP`. It loads neither kfp, TFX nor TensorFlow: what a step needs is imported when
it runs.
"""
