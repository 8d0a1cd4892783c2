"""Pipelines of one's own, compiled: what each node gets, and what no service can run."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest
import yaml
from google.protobuf import json_format
from kfp.pipeline_spec import pipeline_spec_pb2
from tfx.dsl.components.base.base_executor import BaseExecutor
from tfx.orchestration.data_types import RuntimeParameter
from tfx.types.standard_artifacts import Bytes, Integer
from tfx.v1.components import (
    CsvExampleGen,
    ImportExampleGen,
    InfraValidator,
    SchemaGen,
    StatisticsGen,
    Transform,
)
from tfx.v1.components import ImportSchemaGen as StockImportSchemaGen
from tfx.v1.components import Pusher as StockPusher
from tfx.v1.components import Trainer as StockTrainer
from tfx.v1.dsl import Channel, Cond, Importer, Pipeline, Resolver
from tfx.v1.dsl.experimental import LatestBlessedModelStrategy
from tfx.v1.proto import PushDestination, ServingSpec
from tfx.v1.types.standard_artifacts import (
    Examples,
    Model,
    ModelBlessing,
    Schema,
    String,
)

from darkroom.components import ImageToTFRecord, ImportSchemaGen, ManifestGen, Pusher, Trainer
from darkroom.errors import UsageError
from darkroom.options.pipeline import LOCAL_BEAM_ARGS
from darkroom.options.targets import KUBEFLOW, VERTEX
from darkroom.pipelines import ClusterConfig, compile_pipeline
from darkroom.pipelines.compilation.own import list_own_warnings

from .own_package import write_package

pytestmark = pytest.mark.tfx

IMAGE = "registry.example.com/ml/photos:1"
KEYS = ("AWS_ACCESS_KEY_ID", "store-keys/accesskey")


@pytest.fixture(scope="module")
def photolab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    folder = tmp_path_factory.mktemp("package")
    sys.path.insert(0, str(folder))
    yield write_package(folder)
    sys.path.remove(str(folder))


def make_table(photolab: ModuleType, data: str = "rows") -> Any:
    return photolab.MakeTable(epochs=3, data=data, policies="none", seed=7)


def make_pipeline(*components: Any, **options: Any) -> Pipeline:
    options = {"enable_cache": True, **options}
    return Pipeline("photos", components=list(components), **options)


def compile_spec(pipeline: Pipeline, target: str = "kubeflow", **options: Any) -> dict[str, Any]:
    config = ClusterConfig(**{"image": IMAGE, "root": "gs://artifacts/run", **options})
    text = compile_pipeline(pipeline, target, config)
    if target == "vertex":
        return json.loads(text)["pipelineSpec"]
    return next(yaml.safe_load_all(text))


def find_container(spec: dict[str, Any], node: str) -> dict[str, Any]:
    return spec["deploymentSpec"]["executors"][f"{node}_executor"]["container"]


def import_examples(**options: Any) -> Any:
    return Importer("gs://photos/examples", Examples, reimport=True, **options).with_id("Records")


def import_statistics() -> list[Any]:
    """Returns an importer and the statistics of what it imports."""
    records = import_examples()
    return [records, StatisticsGen(records.outputs["result"])]


def test_every_node_gets_what_the_cluster_is_told(photolab: ModuleType):
    records = import_examples(properties={"split_names": '["train", "eval"]'})
    statistics = StatisticsGen(records.outputs["result"])
    taint = {"key": "gpu", "operator": "Exists"}
    config = ClusterConfig(
        image=IMAGE,
        env={"AWS_ENDPOINT_URL": "http://seaweedfs.kubeflow:9000"},
        secret_env=dict([KEYS]),
        volumes={"/mnt/photos": "photos"},
        image_pull_secrets=("registry-key",),
        resources={
            "default": {"cpu": 1, "memory_gb": 4, "retries": 2},
            "StatisticsGen": {
                "cpu": 8,
                "cpu_request": 2,
                "accelerator": "T4",
                "timeout_seconds": 600,
                "pod_labels": {"queue": "photos"},
                "node_selector": {"pool": "gpu"},
                "tolerations": [taint],
            },
            "Shell": {"runs_as_root": True},
        },
    )
    components = [records, statistics, make_table(photolab), photolab.Shell()]
    with pytest.warns(UserWarning, match=r"resources\.StatisticsGen asks for T4"):
        text = compile_pipeline(make_pipeline(*components), "kubeflow", config)
    spec, platform = yaml.safe_load_all(text)
    json_format.ParseDict(spec, pipeline_spec_pb2.PipelineSpec())
    json_format.ParseDict(spec["deploymentSpec"], pipeline_spec_pb2.PipelineDeploymentConfig())
    assert "defaultPipelineRoot" not in spec  # the administrator's holds
    env = [{"name": "AWS_ENDPOINT_URL", "value": "http://seaweedfs.kubeflow:9000"}]
    ours = ["python", "-m", "darkroom.components.entrypoint", "--target", "kubeflow"]
    for name, image, command in (
        ("StatisticsGen", IMAGE, [*ours, "--own-pipeline"]),
        ("MakeTable", IMAGE, [*ours, "--own-pipeline"]),
        ("Shell", "alpine:3", ["sh", "-c", "echo"]),
    ):
        container = find_container(spec, name)
        assert (container["image"], container["command"]) == (image, command)
        assert container["env"] == env
    assert find_container(spec, "MakeTable")["resources"] == {"cpuLimit": 1.0, "memoryLimit": 4.0}
    assert find_container(spec, "StatisticsGen")["resources"] == {
        "cpuLimit": 8.0,
        "cpuRequest": 2.0,
        "memoryLimit": 4.0,
        "accelerator": {"type": "nvidia.com/gpu", "count": "1"},
    }
    tasks = spec["root"]["dag"]["tasks"]
    assert tasks["MakeTable"]["retryPolicy"]["maxRetryCount"] == 2
    assert tasks["StatisticsGen"]["retryPolicy"]["maxRetryCount"] == 2
    shared = {
        "pvcMount": [{"constant": "photos", "mountPath": "/mnt/photos"}],
        "secretAsEnv": [
            {
                "secretName": "store-keys",
                "keyToEnv": [{"envVar": KEYS[0], "secretKey": "accesskey"}],
            }
        ],
        "imagePullSecret": [{"secretName": "registry-key"}],
    }
    assert platform["platforms"]["kubernetes"]["deploymentSpec"]["executors"] == {
        "MakeTable_executor": {**shared, "securityContext": {"runAsNonRoot": True}},
        "Shell_executor": shared,
        "StatisticsGen_executor": {
            **shared,
            "securityContext": {"runAsNonRoot": True},
            "activeDeadlineSeconds": "600",
            "podMetadata": {"labels": {"queue": "photos"}},
            "nodeSelector": {"labels": {"pool": "gpu"}},
            "tolerations": [taint],
        },
    }
    importer = spec["deploymentSpec"]["executors"]["Records_executor"]["importer"]
    assert importer["artifactUri"] == {"constant": "gs://photos/examples"}
    assert importer["metadata"] == {"split_names": '["train", "eval"]'}


@pytest.mark.parametrize(
    ("target", "accelerator"), [("kubeflow", "nvidia.com/gpu"), ("vertex", "NVIDIA_TESLA_T4")]
)
def test_what_a_node_asks_for_itself_is_kept_and_completed(
    photolab: ModuleType, target: str, accelerator: str
):
    spec_class = pipeline_spec_pb2.PipelineDeploymentConfig.PipelineContainerSpec.ResourceSpec
    asked = spec_class(cpu_limit=2, memory_limit=4)
    asked.accelerator.type, asked.accelerator.count = "T4", 1
    table = make_table(photolab).with_platform_config(asked)
    spec = compile_spec(make_pipeline(table), target, resources={"MakeTable": {"memory_gb": 8}})
    assert find_container(spec, "MakeTable")["resources"] == {
        "cpuLimit": 2.0,
        "memoryLimit": 8.0,
        "accelerator": {"type": accelerator, "count": "1"},
    }


def ask_for_gpu(node: Any, accelerator: str = "T4") -> Any:
    spec_class = pipeline_spec_pb2.PipelineDeploymentConfig.PipelineContainerSpec.ResourceSpec
    asked = spec_class()
    asked.accelerator.type, asked.accelerator.count = accelerator, 1
    return node.with_platform_config(asked)


@pytest.mark.parametrize("target", ["kubeflow", "vertex"])
def test_a_node_that_asks_for_a_gpu_without_cuda_is_warned_of(photolab: ModuleType, target: str):
    def list_idle(**options: Any) -> list[str]:
        nodes = [ask_for_gpu(make_table(photolab)), ask_for_gpu(photolab.Shell())]
        config = ClusterConfig(**{"image": IMAGE, **options})
        return list_own_warnings(make_pipeline(*nodes), config, target)

    table, shell = list_idle()
    assert table.startswith("MakeTable.platform_config asks for T4, and the name of the image says")
    assert IMAGE in table
    # It has an image of its own.
    assert shell.startswith("Shell.platform_config asks for T4")
    assert "alpine:3" in shell
    assert list_idle(image=f"{IMAGE}-cuda") == [shell]
    # What the configuration asks for counts, and has a warning of its own.
    resources = {"MakeTable": {"accelerator": "V100"}, "Shell": {"accelerator": "V100"}}
    table, shell = list_idle(resources=resources)
    assert table.startswith("resources.MakeTable asks for V100")
    assert shell.startswith("resources.Shell asks for V100")
    assert "alpine:3" in shell


def test_a_name_that_no_node_has_is_refused_with_those_that_there_are(photolab: ModuleType):
    pipeline = make_pipeline(make_table(photolab).with_id("Table-1"), photolab.Shell())
    with pytest.raises(UsageError) as error:
        compile_spec(pipeline, resources={"MakeTable": {"cpu": 1}})
    assert error.value.message.startswith("resources names 'MakeTable', which is not a component")
    assert error.value.hint == "Components: Shell, Table-1; or 'default' for all."


def list_cached(pipeline: Pipeline, target: str = "kubeflow", **options: Any) -> dict[str, bool]:
    tasks = compile_spec(pipeline, target, **options)["root"]["dag"]["tasks"]
    return {name: bool(task.get("cachingOptions")) for name, task in tasks.items()}


def make_cached_nodes(trainer: Any, pusher: Any) -> list[Any]:
    manifest = ManifestGen("gs://photos/images.csv")
    records = ImageToTFRecord(manifest.outputs["manifest"], manifest.outputs["list_rejects"])
    pinned = ManifestGen("gs://photos/b.csv", source_fingerprint="1").with_id("Pinned")
    schema = ImportSchemaGen("gs://photos/schema.pbtxt")
    old = StockImportSchemaGen("gs://photos/schema.pbtxt").with_id("Stock")
    trained = trainer(run_fn="a.b.run_fn", examples=records.outputs["examples"])
    pushed = make_pusher(pusher, "gs://models", trained.outputs["model"])
    return [manifest, records, pinned, schema, old, trained, pushed]


@pytest.mark.parametrize(
    ("trainer", "pusher", "is_cached"),
    [(Trainer, Pusher, False), (StockTrainer, StockPusher, True)],
    ids=["ours", "stock"],
)
def test_what_reads_or_writes_behind_a_path_is_not_cached(trainer, pusher, is_cached: bool):
    def make() -> Pipeline:
        return make_pipeline(*make_cached_nodes(trainer, pusher))

    assert list_cached(make()) == {
        "ManifestGen": False,
        "ImageToTFRecord": True,
        "Pinned": True,
        "ImportSchemaGen": False,
        "Stock": False,
        "Trainer": is_cached,
        "Pusher": False,
    }
    assert not any(list_cached(make(), cache=False).values())
    nodes = make_cached_nodes(trainer, pusher)
    assert not any(list_cached(make_pipeline(*nodes, enable_cache=False)).values())


def test_a_stock_example_gen_is_not_cached_nor_a_node_whose_driver_does_not_run(
    photolab: ModuleType,
):
    examples = ImportExampleGen("gs://photos/records")
    statistics = StatisticsGen(examples.outputs["examples"])
    node = photolab.make_node(photolab.Table, driver=photolab.Driver, executor=BaseExecutor)
    with pytest.warns(UserWarning, match="Node has its own driver") as warnings:
        cached = list_cached(make_pipeline(examples, statistics, node), "vertex")
    assert cached == {"ImportExampleGen": False, "StatisticsGen": True, "Node": False}
    assert [str(each.message) for each in warnings if each.category is UserWarning] == [
        "Node has its own driver, Driver, and vertex runs no drivers. The node runs each time."
    ]


REGION = {"AWS_REGION": "eu-west-1"}
ENDPOINT = {**REGION, "AWS_ENDPOINT_URL_S3": "http://store.example.com:9000"}


@pytest.mark.parametrize(
    ("uri", "options", "target", "is_warned"),
    [
        ("minio://photos/records", {"root": ""}, KUBEFLOW, True),
        ("s3://photos/records", {"root": "minio://photos/runs"}, KUBEFLOW, True),
        ("s3://photos/records", {"env": ENDPOINT}, KUBEFLOW, True),
        ("minio://mlpipeline/records", {"root": "minio://mlpipeline/runs"}, KUBEFLOW, False),
        ("s3://photos/records", {"root": "s3://photos/runs"}, KUBEFLOW, False),
        ("s3://photos/records", {"env": REGION}, KUBEFLOW, False),
        ("gs://photos/records", {}, VERTEX, False),
    ],
)
def test_an_importer_from_a_bucket_that_kubeflow_may_not_reach_is_warned_of(
    uri: str, options: dict[str, Any], target: str, is_warned: bool
):
    records = Importer(uri, Examples, reimport=True).with_id("Records")
    pipeline = make_pipeline(records, StatisticsGen(records.outputs["result"]))
    config = ClusterConfig(**{"image": IMAGE, "root": "gs://artifacts/run", **options})
    said = f"Records names '{uri}', which is in another bucket than"
    found = list_own_warnings(pipeline, config, target)
    assert [each.startswith(said) for each in found] == [True] * is_warned


def test_arguments_of_beam_are_the_pipelines_unless_the_configuration_has_some():
    def make(*own: str, **options: Any) -> Pipeline:
        records = import_examples()
        statistics = StatisticsGen(records.outputs["result"])
        if own:
            statistics.with_beam_pipeline_args(list(own))
        schema = SchemaGen(statistics.outputs["statistics"])
        return make_pipeline(records, statistics, schema, **options)

    def list_args(pipeline: Pipeline, **options: Any) -> list[str]:
        spec = compile_spec(pipeline, **options)
        assert not any("--runner" in each for each in find_container(spec, "SchemaGen")["args"])
        return find_container(spec, "StatisticsGen")["args"][6:]

    image = f"--sdk_container_image={IMAGE}"
    assert list_args(make()) == ["--runner=FnApiRunner", image]
    local = [*LOCAL_BEAM_ARGS, "--direct_num_workers=2"]
    assert list_args(make(beam_pipeline_args=local)) == [
        "--runner=FnApiRunner",
        "--direct_num_workers=2",
        image,
    ]
    flink = ("--runner=PortableRunner", "--job_endpoint=flink:8099")
    pipeline = make("--job_name=statistics", beam_pipeline_args=local)
    assert list_args(pipeline, beam_args=flink)[:4] == [
        *flink,
        "--job_name=statistics",
        image,
    ]
    with pytest.raises(UsageError, match="needs project and region and temp_location"):
        list_args(make(beam_pipeline_args=["--runner=DataflowRunner"]))


@pytest.mark.parametrize(
    ("argument", "message", "target", "is_shared"),
    [
        ("--job_name=$$y$(HOME)", "is '--job_name=$$y$(HOME)'. ", KUBEFLOW, True),
        ("--url=https://me:hunter2hunter2@host/", "seems to contain a credential", VERTEX, False),
    ],
)
def test_an_argument_of_beam_that_no_task_gets_is_an_error_that_names_the_node(
    argument: str, message: str, target: str, is_shared: bool
):
    records = import_examples()
    statistics = StatisticsGen(records.outputs["result"])
    if not is_shared:
        statistics.with_beam_pipeline_args([argument])
    pipeline = make_pipeline(
        records, statistics, beam_pipeline_args=[argument] if is_shared else None
    )
    with pytest.raises(UsageError) as error:
        compile_spec(pipeline, target)
    assert error.value.message.startswith(f"StatisticsGen.beam_pipeline_args[0] {message}")
    assert "hunter2" not in str(error.value)


def test_a_run_time_parameter_keeps_its_default():
    source = RuntimeParameter("images", str, default="gs://photos/images.csv")
    manifest = ManifestGen(source, source_fingerprint=RuntimeParameter("state", str))
    spec = compile_spec(make_pipeline(manifest))
    assert spec["root"]["inputDefinitions"]["parameters"] == {
        "images": {
            "parameterType": "STRING",
            "defaultValue": "gs://photos/images.csv",
            "isOptional": True,
        },
        "state": {"parameterType": "STRING"},
    }


def test_a_root_in_a_store_may_be_the_pipelines(photolab: ModuleType):
    for own, given, found in (
        ("gs://b/own", "", "gs://b/own"),
        ("gs://b/own", "s3://b/given", "s3://b/given"),
        ("/home/me/runs", "", None),
    ):
        pipeline = make_pipeline(make_table(photolab), pipeline_root=own)
        spec = compile_spec(pipeline, root=given)
        assert spec.get("defaultPipelineRoot") == found
    for own, message in (
        ("/home/me/runs", "vertex cannot keep artifacts in"),
        ("gs://artifacts/$(NAME)", "root is 'gs://artifacts/"),
    ):
        pipeline = make_pipeline(make_table(photolab), pipeline_root=own)
        with pytest.raises(UsageError, match=message):
            compile_spec(pipeline, "vertex", root="")


def make_resolver() -> Any:
    return Resolver(
        strategy_class=LatestBlessedModelStrategy,
        model=Channel(type=Model),
        model_blessing=Channel(type=ModelBlessing),
    ).with_id("Last")


def make_pusher(kind: Any, folder: str, model: Any = None) -> Any:
    return kind(
        model or Channel(type=Model),
        push_destination=PushDestination(
            filesystem=PushDestination.Filesystem(base_directory=folder)
        ),
    )


def make_local_class(photolab: ModuleType) -> Any:
    class Executor(BaseExecutor):
        pass

    return photolab.make_node(photolab.Table, executor=Executor)


def make_main_class(photolab: ModuleType) -> Any:
    executor = type("Executor", (BaseExecutor,), {"__module__": "__main__"})
    return photolab.make_node(photolab.Table, executor=executor)


def make_late_table(photolab: ModuleType) -> Any:
    late = make_table(photolab).with_id("Late")
    late.add_upstream_node(make_table(photolab))
    return late


def make_conditional_table(photolab: ModuleType) -> Any:
    with Cond(import_examples().outputs["result"].future()[0].uri == "gs://a"):
        return make_table(photolab)


def make_old_table(photolab: ModuleType) -> Any:
    table = make_table(photolab)
    make_pipeline(table)
    return table


def make_good_model(_: ModuleType) -> list[Any]:
    blessing = Importer("gs://runs/blessing", ModelBlessing, reimport=True).with_id("Blessing")
    with Cond(blessing.outputs["result"].future()[0].custom_property("blessed") == 1):
        return [blessing, Importer("gs://models/1", Model, reimport=True)]


def make_table_of_a_good_text(photolab: ModuleType) -> list[Any]:
    first = photolab.make_node(String, "First")
    with Cond(first.outputs["made"].future()[0].value == "good"):
        return [first, make_table(photolab)]


def make_table_of_a_number(photolab: ModuleType) -> list[Any]:
    number = photolab.make_node(Integer, "Number")
    epochs = number.outputs["made"].future()[0].value
    return [number, photolab.MakeTable(epochs=epochs, data="", policies="", seed=0)]


REFUSED: list[tuple[str, Callable[[ModuleType], Any], str]] = [
    ("kubeflow", lambda _: CsvExampleGen("gs://b/t"), "the node CsvExampleGen: it runs no driver"),
    ("kubeflow", lambda _: make_resolver(), "cannot run the node Last: it runs no Resolver."),
    ("vertex", lambda _: InfraValidator(Channel(type=Model), ServingSpec()), "InfraValidator, wh"),
    ("vertex", lambda p: p.make_node(p.Nameless), "Invalid custom artifact type name: Nameless"),
    ("vertex", lambda p: p.make_node(Bytes), "Invalid custom artifact type name: Bytes"),
    ("kubeflow", lambda p: p.make_node(p.WithProperties), "which declares PROPERTIES"),
    ("kubeflow", lambda p: p.make_node(p.Elsewhere), "but photolab has no class NotThere"),
    ("kubeflow", lambda p: make_local_class(p), "Executor'> does not have a qualified name"),
    ("vertex", lambda p: make_main_class(p), "The executor of Node is in the program that was st"),
    ("kubeflow", lambda p: p.make_node(p.Table, "a_b"), "Use letters, digits and dashes: .with_id"),
    ("kubeflow", lambda p: make_table(p, data="$(HOME)"), "MakeTable.data is '$(HOME)'. Kube"),
    ("vertex", lambda p: make_table(p, data="$$a"), "data is '$$a'. Vertex may replace $$ on"),
    (
        "vertex",
        lambda p: make_table(p, data="https://me:hunter2hunter2@host/"),
        "MakeTable.data seems to contain a credential: password in a URL",
    ),
    (
        "kubeflow",
        lambda _: StockTrainer(examples=Channel(type=Examples), module_file="t.py"),
        "name it, as in run_fn='PACKAGE.MODULE.run_fn'",
    ),
    (
        "kubeflow",
        lambda _: Transform(Channel(type=Examples), Channel(type=Schema), module_file="t.py"),
        "Transform has a module_file. TFX would copy its code into the pipeline root, from where",
    ),
    ("kubeflow", lambda _: ManifestGen("images.csv"), "ManifestGen.source is 'images.csv', which"),
    ("kubeflow", lambda _: StockImportSchemaGen("s3://b/s"), "Give a path of gs://"),
    ("vertex", lambda _: CsvExampleGen("/home/me"), "CsvExampleGen.input_base is '/home/me', wh"),
    ("kubeflow", lambda _: Importer("/mnt/a", Model), "Importer.artifact_uri is '/mnt/a', which"),
    ("kubeflow", lambda _: make_pusher(StockPusher, "s3://m"), "Pusher.push_destination is 's3:/"),
    ("vertex", lambda _: Pipeline("inner", components=[]), "inner is a nested pipeline"),
    # What was forgotten, or is of another pipeline.
    ("kubeflow", lambda _: import_statistics()[1], "StatisticsGen needs Records, which is not amo"),
    ("kubeflow", make_late_table, "Late needs MakeTable, which is not among the components of the"),
    ("kubeflow", make_conditional_table, "MakeTable needs Records, which is not among the comp"),
    ("kubeflow", make_old_table, "MakeTable belongs to an earlier Pipeline object"),
    # What only a run knows.
    ("kubeflow", make_good_model, "an Importer must not have a condition"),
    ("kubeflow", make_table_of_a_good_text, "unsupported placeholder operator artifact_value_op"),
    ("kubeflow", make_table_of_a_number, "MakeTable.epochs is the value of an output"),
]


@pytest.mark.filterwarnings("ignore:Node .* depends on the output of node")  # TFX's own
@pytest.mark.parametrize(
    ("target", "make", "message"), REFUSED, ids=[f"{n}-{each[0]}" for n, each in enumerate(REFUSED)]
)
def test_what_a_service_cannot_run_is_an_error_that_names_the_node(
    photolab: ModuleType, target: str, make: Callable[[ModuleType], Any], message: str
):
    made = make(photolab)
    with pytest.raises(UsageError) as error:
        compile_spec(make_pipeline(*(made if isinstance(made, list) else [made])), target)
    assert message in str(error.value)
    assert "hunter2" not in str(error.value)


def test_places_that_tasks_of_kubeflow_see_are_taken():
    manifest = ManifestGen("/mnt/photos/images.csv")
    model = Importer("minio://models/1", Model, reimport=True)
    pusher = make_pusher(Pusher, "s3://models", model.outputs["result"])
    compile_spec(make_pipeline(manifest, model, pusher), volumes={"/mnt/photos": "photos"})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"image": "a b"}, "image is 'a b', expected the container image"),
        ({"env": {"A": "https://me:hunter2hunter2@host/"}}, "seems to contain a credential"),
    ],
)
def test_what_a_cluster_is_told_is_checked(photolab: ModuleType, options: Any, message: str):
    with pytest.raises(UsageError, match=message):
        compile_spec(make_pipeline(make_table(photolab)), **options)


def test_a_condition_is_part_of_the_task(photolab: ModuleType):
    blessing = Importer("gs://runs/blessing", ModelBlessing, reimport=True).with_id("Blessing")
    is_good = blessing.outputs["result"].future()[0].custom_property("blessed") == 1
    with Cond(is_good):
        table = make_table(photolab)
    spec = compile_spec(make_pipeline(blessing, table))
    task = spec["root"]["dag"]["tasks"]["MakeTable"]
    [key] = task["inputs"]["artifacts"]
    found = f"inputs.artifacts['{key}'].artifacts[0].metadata['blessed']"
    assert task["triggerPolicy"] == {"condition": f"({found} == 1.0)"}
    assert task["dependentTasks"] == ["Blessing"]


def test_a_pipeline_without_a_usable_name_or_components_is_refused(photolab: ModuleType):
    with pytest.raises(UsageError, match="The pipeline's name is 'My Photos'"):
        compile_spec(Pipeline("My Photos", components=[make_table(photolab)]))
    with pytest.raises(UsageError, match="The pipeline has no components"):
        compile_spec(make_pipeline())
