"""The networks that compute features: that of the extra `pretrained`, and models of the user's."""
