# kubepy in an image: `make release-build`, then `docker build --tag kubepy .`
# packaging/README.md describes it. It holds the wheel of dist/, and nothing else of this repository.
ARG PYTHON=python:3.13-slim

FROM ${PYTHON} AS build
COPY dist/*.whl /wheel/
# Without pip, and with bytecode: the user of the image may not write it.
RUN python3 -m venv --without-pip /opt/kubepy \
 && wheel=$(echo /wheel/*.whl) \
 && python3 -m pip --python /opt/kubepy install --no-cache-dir --disable-pip-version-check \
      "kubepy-cluster[serve-core] @ file://$wheel" \
 && /opt/kubepy/bin/python -m compileall -q /opt/kubepy/lib

FROM ${PYTHON}
ARG SOURCE=
LABEL org.opencontainers.image.title="kubepy" \
      org.opencontainers.image.description="A Kubernetes cluster that is a folder of YAML files" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.source="${SOURCE}"
COPY --from=build /opt/kubepy /opt/kubepy
COPY packaging/image/serve packaging/image/healthy /usr/local/bin/
RUN ln -s kubepy /opt/kubepy/bin/kubectl \
 && mkdir -m 0777 /state
ENV PATH=/opt/kubepy/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    HOME=/tmp \
    KUBEPY_STATE=/state/cluster
USER 65532:65532
WORKDIR /tmp
VOLUME /state
EXPOSE 6443
HEALTHCHECK --interval=10s --timeout=5s --start-period=10s CMD ["healthy"]
CMD ["serve"]
