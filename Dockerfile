# Node 20 on Debian 12: its glibc 2.36 is new enough for the uWebSockets.js build of Node 20 (2.27). Node 22 and 24 need
# glibc 2.38, that is Debian 13 (node:22-trixie-slim, node:24-trixie-slim).
ARG NODE_IMAGE=node:20-bookworm-slim

FROM ${NODE_IMAGE} AS build
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci
COPY tsconfig.json tsconfig.build.json ./
COPY src ./src
COPY config ./config
RUN npm run build && npm prune --omit=dev

FROM ${NODE_IMAGE}
ARG GIT_REV=""
ARG GIT_TAG=""
ARG BUILD_TIME=""
ENV NODE_ENV=production GIT_REV=${GIT_REV} GIT_TAG=${GIT_TAG} BUILD_TIME=${BUILD_TIME}
WORKDIR /app
COPY --from=build /app/package.json ./
COPY --from=build /app/node_modules ./node_modules
COPY --from=build /app/dist ./dist
COPY --from=build /app/config ./config
RUN mkdir /app/data && chown node:node /app/data && chmod 0700 /app/data
USER node
VOLUME /app/data
EXPOSE 8080 8081
# The admin listener of the default configuration; a gateway with another one sets its own check.
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s \
  CMD ["node", "-e", "fetch('http://127.0.0.1:8081/livez').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
# Signals go to Node itself: SIGTERM drains and stops.
ENTRYPOINT ["node", "dist/main.js"]
CMD ["serve", "--config", "config/gateway.yaml"]
