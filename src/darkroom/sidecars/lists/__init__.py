"""Lists of objects as other tools read them: COCO, YOLO, Pascal VOC."""
