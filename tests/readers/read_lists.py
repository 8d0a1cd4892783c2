"""Prints the objects of each image of two lists, as tools of detection read them."""

import json
import sys

import torchvision
from pycocotools.coco import COCO
from ultralytics.data.dataset import YOLODataset
from ultralytics.data.utils import check_det_dataset

coco, yolo = sys.argv[1:]
data = COCO(f"{coco}/instances_train.json")
names = {number: each["name"] for number, each in data.cats.items()}
for image, facts in data.imgs.items():
    for each in data.loadAnns(data.getAnnIds(image)):
        said = [names[each["category_id"]], each["bbox"], each["area"], each["iscrowd"]]
        print(json.dumps(["pycocotools", facts["file_name"], *said]))
for picture, found in torchvision.datasets.CocoDetection(coco, f"{coco}/instances_train.json"):
    boxes = [each["bbox"] for each in found]
    print(json.dumps(["torchvision", picture.size, boxes]))
settings = check_det_dataset(f"{yolo}/data.yaml")
for label in YOLODataset(img_path=settings["train"], data=settings, augment=False).labels:
    classes = [settings["names"][int(number)] for number in label["cls"].ravel()]
    print(json.dumps(["ultralytics", label["im_file"], classes, label["bboxes"].tolist()]))
