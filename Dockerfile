# For a host with an NVIDIA GPU, and for a Hugging Face Space with GPU hardware. vLLM is the official image's own.
FROM vllm/vllm-openai:v0.32.0

# The image has vLLM and torch already. Naming them again makes pip respect what they need, and refuse what they can't
# live with.
COPY requirements-viewer.txt requirements-app.txt requirements.txt /tmp/requirements/
RUN PIP_BREAK_SYSTEM_PACKAGES=1 python3 -m pip install --no-cache-dir -r /tmp/requirements/requirements.txt \
    && rm -r /tmp/requirements

# Spaces run as user 1000. Some base images have one already.
RUN (getent passwd 1000 || useradd --uid 1000 --no-create-home --home-dir /home/playground playground) \
    && install --directory --owner 1000 --group 0 /home/playground /app
ENV HOME=/home/playground \
    PLAYGROUND_HOST=0.0.0.0 \
    PLAYGROUND_PORT=7860 \
    PYTHONUNBUFFERED=1
WORKDIR /app
COPY app.py ./
COPY playground ./playground
COPY presets ./presets
USER 1000

EXPOSE 7860
HEALTHCHECK --interval=30s --timeout=10s --start-period=2m CMD ["python3", "-c", \
    "import os, urllib.request as u; u.urlopen('http://127.0.0.1:' + os.environ['PLAYGROUND_PORT'] + '/healthz', timeout=8)"]

# The base image's entry point is a bare vLLM server.
ENTRYPOINT []
CMD ["python3", "app.py"]
