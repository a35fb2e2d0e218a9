import tseslint from 'typescript-eslint'

/** What the pure parts may not touch: sockets, store, timers, logger, clock, randomness (docs/architecture.md). */
const impureModules = [
  { group: ['node:*', '!node:crypto', 'fs', 'net', 'http', 'https', 'timers', 'ws', 'uWebSockets.js', 'undici', 'lmdb', 'keyv', '@keyv/*', 'pino', 'prom-client', 'yaml'], message: 'core/, protocol/ and translate/ are pure: no I/O, no clock, no logger.' },
  { group: ['**/route/*', '**/legacy/*', '**/xagent/*', '**/ops/*', '**/cli/*', '**/sim/*', '**/store/*', '**/gateway.js'], message: 'core/, protocol/ and translate/ do not know the shells.' },
]
const impureGlobals = ['setTimeout', 'setInterval', 'setImmediate', 'queueMicrotask', 'fetch', 'process', 'console', 'performance']
  .map((name) => ({ name, message: 'core/, protocol/ and translate/ are pure.' }))

export default tseslint.config(
  { ignores: ['dist/**', 'node_modules/**', '.tap/**', 'data/**'] },
  ...tseslint.configs.recommended,
  {
    rules: {
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_', caughtErrorsIgnorePattern: '^_' }],
      '@typescript-eslint/switch-exhaustiveness-check': 'error',
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/consistent-type-imports': 'error',
      eqeqeq: 'error',
      'no-console': 'error',
    },
    languageOptions: { parserOptions: { projectService: { allowDefaultProject: ['eslint.config.js'] }, tsconfigRootDir: import.meta.dirname } },
  },
  {
    files: ['src/core/**', 'src/protocol/**', 'src/translate/**'],
    rules: {
      'no-restricted-imports': ['error', { patterns: impureModules, paths: [{ name: 'node:crypto', importNames: ['randomUUID', 'randomBytes', 'randomInt', 'getRandomValues', 'webcrypto'], message: 'No randomness in the pure parts: take it as an argument.' }] }],
      'no-restricted-globals': ['error', ...impureGlobals],
      'no-restricted-properties': ['error',
        { object: 'Date', property: 'now', message: 'The clock is an argument.' },
        { object: 'Math', property: 'random', message: 'Randomness is an argument.' }],
      'no-restricted-syntax': ['error', { selector: 'NewExpression[callee.name="Date"][arguments.length=0]', message: 'The clock is an argument.' }],
    },
  },
  // tap collects the promises of its tests itself.
  { files: ['test/**'], rules: { '@typescript-eslint/no-floating-promises': 'off' } },
  // What people run and read on a terminal.
  { files: ['test/chaos/main.ts'], rules: { 'no-console': 'off' } },
  { files: ['eslint.config.js'], ...tseslint.configs.disableTypeChecked },
)
