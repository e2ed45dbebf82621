"""The Spark session of the pipeline, the Java that it needs, and checks of both."""
