# On vLLM's official image, for a host with an NVIDIA GPU or a Space with GPU hardware. Without a GPU:
# --build-arg BASE=vllm/vllm-openai-cpu:v0.32.0
ARG BASE=vllm/vllm-openai:v0.32.0
FROM ${BASE}

# The app has an environment of its own, so that nothing of the image's vLLM changes. What it lacks itself, torch above
# all, it finds behind its own packages in the image's.
COPY requirements-viewer.txt requirements-app.txt /tmp/requirements/
RUN python3 -m venv --without-pip /opt/playground \
    && python3 -c "import importlib.util, pathlib; print(pathlib.Path(importlib.util.find_spec('torch').origin).parents[1])" \
        > "$(/opt/playground/bin/python -c "import sysconfig; print(sysconfig.get_path('purelib'))")/image.pth" \
    && python3 -m pip --python /opt/playground/bin/python install --no-cache-dir -r /tmp/requirements/requirements-app.txt \
    && rm -r /tmp/requirements

# Spaces run as user 1000. Some base images have one already.
RUN (getent passwd 1000 || useradd --uid 1000 --no-create-home --home-dir /home/playground playground) \
    && install --directory --owner 1000 --group 0 /home/playground /app
# The runtime is the image's own Python.
ENV HOME=/home/playground \
    PLAYGROUND_HOST=0.0.0.0 \
    PLAYGROUND_PORT=7860 \
    PLAYGROUND_RUNTIMES=default=python3 \
    PYTHONUNBUFFERED=1
WORKDIR /app
COPY app.py ./
COPY playground ./playground
COPY presets ./presets
# The file system may be read-only later.
RUN /opt/playground/bin/python -m compileall -q .
USER 1000

EXPOSE 7860
HEALTHCHECK --interval=30s --timeout=10s --start-period=2m CMD ["/opt/playground/bin/python", "-c", \
    "import os, urllib.request as u; u.urlopen('http://127.0.0.1:' + os.environ['PLAYGROUND_PORT'] + '/healthz', timeout=8)"]

# The base image's entry point is a bare vLLM server.
ENTRYPOINT []
CMD ["/opt/playground/bin/python", "app.py"]
