/** Addresses under a connector's Base URL; a path prefix of it is kept (PROTOCOL "Who dials whom"). */
export function underBase(baseUrl: string, path: `/${string}`): URL {
  const url = new URL(baseUrl)
  url.pathname = url.pathname.replace(/\/+$/, '') + path
  return url
}

/** The data plane's address: `ws:` for `http:`, `wss:` for `https:`. */
export function dataPlaneUrl(baseUrl: string): URL {
  const url = underBase(baseUrl, '/ws')
  url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:'
  return url
}
