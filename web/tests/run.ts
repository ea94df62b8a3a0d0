// Runs these suites, so many at a time, in the order in which they are named: web/tests/run.ts AT_A_TIME FILE...
// Each is a process with a daemon and a browser of its own.

import { spec } from 'node:test/reporters';
import { run } from 'node:test';

const [atATime, ...files] = process.argv.slice(2);
run({ files, concurrency: Number(atATime) })
  .on('test:fail', () => (process.exitCode = 1))
  .compose(new spec())
  .pipe(process.stdout);
