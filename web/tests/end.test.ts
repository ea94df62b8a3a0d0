// A suite whose beginning fails ends by itself, and says why: nobody waits for a daemon or a browser that it left.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { here } from './browser.ts';
import { LATE_MS } from './patience.ts';

const SUITE = join(import.meta.dirname, 'fixtures', 'begins_badly.ts');

function run(environment: Record<string, string>) {
  // What the runner of these tests says to its children would make the other one one of them.
  const { NODE_TEST_CONTEXT: _, ...others } = process.env;
  return spawnSync(process.execPath, ['--test', SUITE], { encoding: 'utf8', timeout: LATE_MS, killSignal: 'SIGKILL', env: { ...others, ...environment } });
}

describe('a suite that begins badly', { skip: here ? false : 'chromium is not here' }, () => {
  for (const [what, environment] of [['before it has a browser', {}], ['with a browser', { WITH_BROWSER: '1' }]] as const) {
    it(`ends ${what}, and says why`, () => {
      const { status, signal, stdout } = run(environment);
      assert.equal(signal, null, 'it hung');
      assert.equal(status, 1, stdout);
      assert.match(stdout, /the beginning failed/);
    });
  }
});
