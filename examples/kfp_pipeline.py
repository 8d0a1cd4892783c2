"""A pipeline of one's own for Kubeflow and Vertex, of components without TFX.

    python examples/kfp_pipeline.py registry.example.com/darkroom:0.3.0.dev0 pipeline.yaml

It needs the extra `kfp`. The branch is taken only when the dataset passes its checks. The training
gets a GPU where the third argument names one: `nvidia.com/gpu` for Kubeflow, `NVIDIA_TESLA_T4` and
the like for Vertex. The image then needs CUDA: `make image STAGE=cuda` builds one. Without
`from __future__ import annotations`: kfp reads the types of a pipeline as they are.
"""

import sys

from kfp import compiler, dsl

from darkroom.kfp import make_component


def make_pipeline(image: str, accelerator: str = "") -> object:
    """Returns the pipeline.

    Args:
        image: The container image of the components.
        accelerator: The GPU of the training, by its name on the target; none if empty.
    """
    convert = make_component("convert_images", image)
    validate = make_component("validate_dataset", image)
    train = make_component("train_classifier", image)
    evaluate = make_component("evaluate_classifier", image)

    @dsl.pipeline(name="flowers")
    def flowers(data: str, epochs: int = 10) -> None:
        converted = convert(data=data, resize_short_side=256)
        converted.set_cpu_limit("4").set_memory_limit("8G")
        dataset = converted.outputs["dataset"]
        checked = validate(dataset=dataset, policies={"small_classes": "off"}, fail=False)
        with dsl.If(checked.outputs["passed"] == True, name="passed"):  # noqa: E712
            trained = train(dataset=dataset, image_size=[128, 128], epochs=epochs)
            if accelerator:
                trained.set_accelerator_type(accelerator).set_accelerator_limit(1)
            evaluate(model=trained.outputs["trained_model"], dataset=dataset, min_accuracy=0.8)

    return flowers


if __name__ == "__main__":
    image, path, *accelerator = sys.argv[1:]
    compiler.Compiler().compile(make_pipeline(image, *accelerator), path)
