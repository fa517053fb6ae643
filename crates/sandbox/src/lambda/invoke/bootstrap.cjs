// The runtime of Node.js functions: loads the handler once, then answers one event after the other.
//
// Descriptor 4 gives events, descriptor 3 takes answers, the standard streams are the log. What errors look like is what
// AWS's own runtime answers (Lambda developer guide, "Node.js function errors").

'use strict';

const fs = require('fs');
const path = require('path');
const { pathToFileURL } = require('url');
const { format } = require('util');
const { Worker } = require('worker_threads');

const ANSWERS = 3;
const root = process.env.LAMBDA_TASK_ROOT;

// Events are read in a thread of its own, so that the end of the account ends a busy handler too: when nobody is there
// any more, everything that this environment started ends with it.
const READER = `
const fs = require('fs');
const { parentPort } = require('worker_threads');
let data = Buffer.alloc(0);
function more() {
  const part = Buffer.allocUnsafe(65536);
  const count = fs.readSync(4, part);
  if (count === 0) process.kill(0, 'SIGKILL');
  data = Buffer.concat([data, part.subarray(0, count)]);
}
for (;;) {
  while (!data.includes(10)) more();
  const end = data.indexOf(10);
  const head = JSON.parse(data.subarray(0, end).toString());
  data = data.subarray(end + 1);
  while (data.length < head.length) more();
  parentPort.postMessage({ head, event: data.subarray(0, head.length).toString() });
  data = data.subarray(head.length);
}
`;

class Refused extends Error {
  constructor(kind, message) {
    super(message);
    this.name = kind;
  }
}

function write(descriptor, data) {
  let done = 0;
  while (done < data.length) done += fs.writeSync(descriptor, data, done);
}

function answer(kind, body) {
  const bytes = Buffer.from(body);
  write(ANSWERS, Buffer.concat([Buffer.from(`${kind} ${bytes.length}\n`), bytes]));
}

function failure(error) {
  const told =
    error instanceof Error
      ? { errorType: error.name, errorMessage: error.message, trace: (error.stack || '').split('\n') }
      : { errorType: typeof error, errorMessage: String(error), trace: [] };
  const text = JSON.stringify(told);
  console.error('Invoke Error', text);
  return text;
}

let current = null;
let worker = null;

for (const [name, level] of Object.entries({
  log: 'INFO', info: 'INFO', debug: 'DEBUG', warn: 'WARN', error: 'ERROR', trace: 'TRACE',
})) {
  console[name] = (...parts) => {
    const line = format(...parts).replace(/\n/g, '\r');
    const id = current ? current.head.id : 'undefined';
    write(2, Buffer.from(`${new Date().toISOString()}\t${id}\t${level}\t${line}\n`));
  };
}

function finish(kind, body) {
  if (!current) return;
  const { head } = current;
  worker.ref();
  write(2, Buffer.from(`\0end ${head.id}\n`));
  current = null;
  answer(kind, body);
}

function succeed(result) {
  let body;
  try {
    body = JSON.stringify(result === undefined ? null : result);
  } catch (error) {
    return fail(new Refused('Runtime.MarshalError', `Unable to marshal response: ${error.message}`));
  }
  finish('result', body === undefined ? 'null' : body);
}

function fail(error) {
  if (current) finish('error', failure(error));
}

// The answer of a callback waits until nothing else is to be done, unless the handler says otherwise.
function settle(error, result) {
  if (!current || current.settled) return;
  const said = error ? () => fail(error) : () => succeed(result);
  if (current.context.callbackWaitsForEmptyEventLoop) current.settled = said;
  else said();
}

function contextOf(head) {
  const ends = Date.now() + head.milliseconds;
  const variables = process.env;
  return {
    callbackWaitsForEmptyEventLoop: true,
    functionName: variables.AWS_LAMBDA_FUNCTION_NAME,
    functionVersion: variables.AWS_LAMBDA_FUNCTION_VERSION,
    memoryLimitInMB: variables.AWS_LAMBDA_FUNCTION_MEMORY_SIZE,
    logGroupName: variables.AWS_LAMBDA_LOG_GROUP_NAME,
    logStreamName: variables.AWS_LAMBDA_LOG_STREAM_NAME,
    invokedFunctionArn: head.arn,
    awsRequestId: head.id,
    identity: undefined,
    clientContext: head.client ? JSON.parse(Buffer.from(head.client, 'base64').toString()) : undefined,
    getRemainingTimeInMillis: () => Math.max(0, ends - Date.now()),
    done: settle,
    succeed: (result) => settle(null, result),
    fail: (error) => settle(error || 'handled'),
  };
}

function handle(handler, { head, event }) {
  try {
    current = { head, settled: null };
    current.context = contextOf(head);
    worker.unref();
    const result = handler(JSON.parse(event), current.context, settle);
    if (result && typeof result.then === 'function') result.then(succeed, fail);
  } catch (error) {
    fail(error);
  }
}

async function imported(file) {
  if (file.endsWith('.mjs')) return import(pathToFileURL(file));
  try {
    return require(file);
  } catch (error) {
    if (error && error.code === 'ERR_REQUIRE_ESM') return import(pathToFileURL(file));
    throw error;
  }
}

async function load() {
  const named = process.env._HANDLER;
  const parts = /^([^.]+)\.(.+)$/.exec(path.basename(named));
  if (!parts || named.includes('..')) throw new Refused('Runtime.MalformedHandlerName', 'Bad handler');
  const [, base, name] = parts;
  const module = path.join(path.dirname(named), base);
  const file = ['.js', '.mjs', '.cjs'].map((end) => path.join(root, module + end)).find(fs.existsSync);
  if (!file) throw new Refused('Runtime.ImportModuleError', `Error: Cannot find module '${module}'`);
  let loaded;
  try {
    loaded = await imported(file);
  } catch (error) {
    if (error instanceof SyntaxError) throw new Refused('Runtime.UserCodeSyntaxError', String(error));
    if (error && ['MODULE_NOT_FOUND', 'ERR_MODULE_NOT_FOUND'].includes(error.code))
      throw new Refused('Runtime.ImportModuleError', String(error));
    throw error;
  }
  const within = (from) => name.split('.').reduce((found, part) => found && found[part], from);
  const handler = within(loaded) || within(loaded.default);
  if (typeof handler !== 'function')
    throw new Refused('Runtime.HandlerNotFound', `${named} is undefined or not exported`);
  return handler;
}

function ended(error, code) {
  if (current) fail(error);
  else failure(error);
  process.exit(code);
}

process.on('uncaughtException', (error) => ended(error, 129));
process.on('unhandledRejection', (reason) =>
  ended(new Refused('Runtime.UnhandledPromiseRejection', String(reason)), 128));
process.on('beforeExit', () => {
  if (current) (current.settled || (() => succeed(null)))();
});

load().then(
  (handler) => {
    worker = new Worker(READER, { eval: true });
    worker.on('message', (message) => handle(handler, message));
    answer('ready', '');
  },
  (error) => {
    answer('refused', failure(error));
    process.exit(1);
  },
);
