# longtail serve in a container: docker build -t longtail .
# docker run -p 127.0.0.1:8000:8000 -v "$PWD/my-model:/data/model:ro" -v "$PWD/tokens.txt:/data/tokens.txt:ro" longtail
FROM python:3.11-slim
WORKDIR /build
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src ./src
RUN pip install --no-cache-dir -c constraints.txt ".[serve,review,documents,stack]"
RUN useradd --create-home longtail
USER longtail
WORKDIR /data
EXPOSE 8000
HEALTHCHECK --start-period=60s CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/readyz')"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["longtail"]
CMD ["serve", "model", "--host", "0.0.0.0", "--port", "8000", "--tokens", "tokens.txt"]
