# Your application on top of Windlass. From the folder of your code:
#     docker build --file Dockerfile.app --tag shop .
FROM windlass
COPY --chown=10001:10001 . /app
CMD ["worker", "jobs:app", "--json-logs"]
