"""Other formats of a trained model: Keras's own file, TFLite and ONNX."""
