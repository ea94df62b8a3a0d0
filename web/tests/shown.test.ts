// What forms show beside themselves: every command line and every call of the API is run as it stands, against a daemon,
// and does what the form does. Only what a form cannot know is put in: secrets, files with them, the token.

import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import assert from 'node:assert/strict';
import { dirname, join, resolve } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { Alert, AlertRule, BenchPlan, BenchRun, Grant, Host, Job, Receiver, Session, Target } from '../src/api/types.ts';
import * as accounts from '../src/lib/account_changes.ts';
import * as alerts from '../src/lib/alert_changes.ts';
import { cancelRun, forgetRun, runForm, startRun } from '../src/lib/bench.ts';
import * as changes from '../src/lib/changes.ts';
import type { Change } from '../src/lib/changes.ts';
import * as config from '../src/lib/config_changes.ts';
import { rollBack } from '../src/lib/generations.ts';
import { cancelJob } from '../src/lib/jobs.ts';
import * as sets from '../src/lib/set_changes.ts';
import { Daemon, PROGRAM } from './daemon.ts';
import { LATE_MS } from './patience.ts';
import { until } from './steps.ts';

const daemon = new Daemon();
const PASSWORD = 'five words that nobody knows';
const HOOK = 'http://127.0.0.1:9/hook';
const secret = join(daemon.dir, 'secret');
const hookFile = join(daemon.dir, 'hook');

/** The two ways that are shown, each with objects of its own. */
type Way = 'line' | 'call';

const read = async <T>(path: string): Promise<T> => {
  const answer = await fetch(`${daemon.url}/api/v1/${path}`, { headers: { authorization: `Bearer ${daemon.token}` } });
  return (await answer.json()) as T;
};
const post = async <T>(path: string, body: unknown): Promise<T> => {
  const answer = await fetch(`${daemon.url}/api/v1/${path}`, { method: 'POST', headers: { authorization: `Bearer ${daemon.token}`, 'content-type': 'application/json' }, body: JSON.stringify(body) });
  assert.ok(answer.ok, `${path}: ${answer.status}`);
  return (await answer.json()) as T;
};
const make = (...words: string[]) => daemon.run(...words);
const iqn = (way: Way) => `iqn.2026-01.org:h-${way}`;
const one = async <T extends { id: number }>(path: string): Promise<T> => {
  const all = await read<T[]>(path);
  assert.ok(all[0], `nothing at ${path}`);
  return all[0];
};
const rule = (id: string) => read<AlertRule>(`alerts/rules/${id}`);
const hook = (way: Way) => ({ ...alerts.receiverForm(), name: `r-${way}`, kind: 'command' as const, command: 'pager' });
const share = (way: Way, name: string, hosts: string[]) => ({ name, size: '16M', hosts, target: hosts.length ? `t-${way}` : '', pool: '', blockSize: 512, thin: true, integrity: false });

/** Each as no new receiver has it. */
const OTHER = { enabled: false, least: 'info' as const, group: 60, remind: 1, resolved: false, rules: ['lun_offline'] };

async function receiverIs(way: Way, wanted: Partial<alerts.ReceiverForm>): Promise<void> {
  const is = alerts.receiverForm(await read<Receiver>(`alerts/receivers/r-${way}`));
  assert.deepEqual({ ...is, ...wanted }, is);
}

interface Step {
  name: string;
  change: (way: Way) => Change | Promise<Change>;
  /** It cannot be done here, and both ways say why with this code. */
  refused?: string;
  /** What is so afterwards, where that is not plain from the success. */
  then?: (way: Way) => Promise<void>;
  /** It would end what the other steps need: both only ask. */
  dry?: true;
}

const step = (name: string, change: Step['change'], how: Omit<Step, 'name' | 'change'> = {}): Step => ({ name, change, ...how });

const STEPS: Step[] = [
  step('createTarget', (way) => sets.createTarget(`t-${way}`, '', '')),
  step('createHost', (way) => changes.createHost(`h-${way}`, [iqn(way)])),
  step('createShare', async (way) => changes.createShare(share(way, `v-${way}`, [`h-${way}`]), await read<Host[]>('hosts'), await read<Target[]>('targets'))),
  step('createShare', (way) => changes.createShare({ ...share(way, `w-${way}`, []), thin: false, integrity: true, blockSize: 4096 }, [], [])),
  step('grant', (way) => changes.grant(`h-${way}`, `w-${way}`, `t-${way}`, true)),
  step('set', (way) => sets.setGrant(`h-${way}:t-${way}:w-${way}`, { read_only: false })),
  step('revoke', async (way) => changes.revoke(await read<Grant>(`grants/${encodeURIComponent(`h-${way}:t-${way}:w-${way}`)}`))),
  step('allow', async (way) => changes.allow(`iqn.2026-01.org:new-${way}`, '', [`w-${way}`, `v-${way}`], `t-${way}`, await read<Host[]>('hosts'))),
  step('resize', (way) => changes.resize(`v-${way}`, '32M')),
  // It cuts off the end.
  step('resize', (way) => changes.resize(`w-${way}`, '8M')),
  step('set', (way) => changes.setLun(`v-${way}`, { shares: 200, limit: { iops: 5000 } })),
  // It gives up a promise.
  step('set', (way) => changes.setLun(`v-${way}`, { cache: 'volatile' })),
  step('set', (way) => sets.setHost(`h-${way}`, { chap: { user: 'u', secret: { value: PASSWORD } } })),
  step('set', (way) => sets.setHost(`h-${way}`, { chap: null })),
  step('set', (way) => sets.setTarget(`t-${way}`, { redirect: { to: '127.0.1.1:3260', permanent: true } })),
  step('set', (way) => sets.setTarget(`t-${way}`, { redirect: null })),
  step('rename', (way) => changes.rename('lun', `w-${way}`, `x-${way}`)),
  step('scrub', (way) => changes.scrub(`x-${way}`, 'start')),
  step('scrub', (way) => changes.scrub(`x-${way}`, 'stop')),
  step('removeLun', (way) => changes.removeLun(`x-${way}`)),
  step('restoreLun', (way) => changes.restoreLun(`x-${way}`)),
  step('purgeLun', (way) => {
    make('lun', 'delete', `x-${way}`, '--yes');
    return changes.purgeLun(`x-${way}`);
  }),
  // A host with a single path, which is an alert as well.
  step('dropSession', async (way) => {
    daemon.load(iqn(way), way === 'line' ? 31 : 32, 1, `t-${way}`, 0, '-o1', '-g100');
    const mine = async () => (await read<Session[]>('sessions')).find((session) => session.host === `h-${way}` && session.luns?.length);
    await until('the host has a session', async () => (await mine()) !== undefined);
    return changes.dropSession((await mine())?.id ?? 0, `h-${way}`);
  }),
  step('setRule', async (way) => alerts.setRule(await rule('host_single_path'), { ...alerts.ruleForm(await rule('host_single_path')), hold: way === 'line' ? 0 : 1, clear: 600 })),
  step('acknowledge', async () => {
    await until('an alert fires', async () => (await read<Alert[]>('alerts')).length > 0, LATE_MS);
    return alerts.acknowledge(await one<Alert>('alerts'), 'seen to');
  }),
  step('unacknowledge', async () => alerts.unacknowledge(await one<Alert>('alerts'))),
  step('silenceAlert', async () => alerts.silenceAlert(await one<Alert>('alerts'), 2, 'not now')),
  step('unsilenceAlert', async () => alerts.unsilenceAlert(await one<Alert>('alerts'))),
  step('createSilence', (way) => alerts.createSilence({ rule: 'lun_offline', kind: '', object: '', hours: way === 'line' ? 1 : 2, note: 'it is moved' })),
  step('endSilence', async () => alerts.endSilence((await one<{ id: number }>('alerts/silences')).id)),
  step('resetRule', async () => alerts.resetRule(await rule('host_single_path'))),
  step('createReceiver', (way) => alerts.createReceiver(hook(way))),
  step('setReceiver', async (way) => {
    const was = { ...alerts.receiverForm(await read<Receiver>(`alerts/receivers/r-${way}`)) };
    return alerts.setReceiver(was.name, { ...was, ...OTHER }, was);
  }, { then: (way) => receiverIs(way, OTHER) }),
  // And back to what new ones are.
  step('setReceiver', async (way) => {
    const was = alerts.receiverForm(await read<Receiver>(`alerts/receivers/r-${way}`));
    return alerts.setReceiver(was.name, hook(way), was);
  }, { then: (way) => receiverIs(way, hook(way)) }),
  step('setReceiver', async (way) => {
    const was = alerts.receiverForm(await read<Receiver>(`alerts/receivers/r-${way}`));
    return alerts.setReceiver(was.name, was, was);
  }),
  step('testReceiver', (way) => alerts.testReceiver(`r-${way}`)),
  step('removeReceiver', (way) => alerts.removeReceiver(`r-${way}`)),
  step('createReceiver', (way) => alerts.createReceiver({ ...hook(way), kind: 'webhook', url: HOOK, token: PASSWORD })),
  step('createReceiver', (way) => alerts.createReceiver({ ...hook(way), name: `m-${way}`, kind: 'mail', server: '127.0.0.1', user: 'u', password: PASSWORD, from: 'a@b.org', to: 'c@d.org, e@f.org' })),
  step('setReceiver', async (way) => {
    const was = alerts.receiverForm(await read<Receiver>(`alerts/receivers/m-${way}`));
    return alerts.setReceiver(was.name, { ...was, user: '' }, was);
  }),
  step('createUser', (way) => accounts.createUser(`u-${way}`, 'operator', PASSWORD, false)),
  step('setUser', (way) => accounts.setUser(`u-${way}`, { role: 'viewer', enabled: true })),
  step('endOtherSessions', async (way) => {
    await logIn(`u-${way}`);
    return accounts.endOtherSessions(`u-${way}`, 1);
  }),
  step('ownPassword', (way) => accounts.ownPassword(`u-${way}`, PASSWORD, LATER)),
  step('resetPassword', (way) => accounts.resetPassword(`u-${way}`, PASSWORD, true)),
  step('removeUser', (way) => accounts.removeUser(`u-${way}`)),
  step('createToken', (way) => accounts.createToken(`k-${way}`, 'viewer', 30)),
  step('revokeToken', async (way) => {
    const token = (await read<{ id: string; name: string }[]>('tokens')).find(({ name }) => name === `k-${way}`);
    return accounts.revokeToken(token?.id ?? '', `k-${way}`);
  }),
  step('setConfig', (way) => config.setNodeName(`san-${way}`)),
  step('setConfig', (way) => config.setScrubDays(way === 'line' ? 30 : 31)),
  step('setConfig', (way) => config.setPortals('default', [`127.0.1.1:${daemon.port}`, way === 'line' ? '127.0.2.1:0' : '127.0.3.1:0'])),
  step('setConfig', (way) => config.addPool({ name: `p-${way}`, path: join(daemon.dir, `p-${way}`), journal: join(daemon.dir, `p-${way}.journal`), size: '16MiB' })),
  step('removePool', (way) => config.removePool(`p-${way}`)),
  step('rollBack', async () => {
    const kept = await read<{ generation: number; in_force: boolean }[]>('generations');
    return rollBack(kept.find((one) => !one.in_force)?.generation ?? 0);
  }, { dry: true }),
  step('restartNode', () => config.restartNode('san-a', 2), { dry: true }),
  step('cancelJob', async (way) => {
    // Holes of so much are read for many minutes.
    make('lun', 'create', `huge-${way}`, '--size', '8T');
    make('scrub', 'start', `huge-${way}`);
    const mine = async () => (await read<Job[]>('jobs')).find((job) => job.object === `huge-${way}` && job.state === 'running');
    await until('the scrub is a job', async () => (await mine()) !== undefined);
    return cancelJob((await mine()) as Job);
  }),
  step('cancelRun', async (way) => cancelRun(await aRun(way))),
  step('forgetRun', async () => {
    const runs = async () => (await read<BenchRun[]>('bench/runs')).filter((run) => run.state === 'cancelled');
    await until('the run has ended', async () => (await runs()).length > 0);
    return forgetRun((await runs())[0] as BenchRun);
  }),
  // It writes over what is there: without the plan's word for that it is refused.
  step('startRun', async (way) => {
    make('share', 'create', `s-${way}`, '--size', '16M', '--target', 'bench', '--for', '*');
    const form = { ...runForm(`s-${way}`), writePercent: 50, seconds: 1, warmUp: 0, iopsMax: '100' };
    const { plan } = await post<{ plan: BenchPlan }>('bench/runs?dry_run=true', startRun(form).body);
    assert.equal(plan.confirm, `s-${way}`);
    return startRun(form, plan);
  }, { then: async () => until('no run goes on', async () => (await read<BenchRun[]>('bench/runs')).every((run) => run.state !== 'running')) }),
  step('reopenJournal', () => changes.reopenJournal('default')),
  step('discardJournal', () => sets.discardJournal('default'), { refused: 'CWY3010' }),
  step('removeHost', (way) => changes.removeHost(`h-${way}`)),
  step('removeTarget', (way) => sets.removeTarget(`t-${way}`)),
];

/** These take what is not here: their own tests do them. */
const ELSEWHERE: Record<string, string> = {
  adopt: 'a LUN that no object names: earlier.test.ts',
  forgetDisk: 'a disk that is gone',
  setLink: 'a lab, which takes root',
  startBed: 'a lab, which takes root',
  tearDown: 'a lab, which takes root',
};

const LATER = 'five words that came later';
let login = { COOKIE: '', CSRF: '' };

async function logIn(user: string): Promise<void> {
  const answer = await fetch(`${daemon.url}/api/v1/login`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ user, password: PASSWORD }) });
  const { csrf } = (await answer.json()) as { csrf: string };
  login = { COOKIE: answer.headers.get('set-cookie')?.split(';')[0]?.split('=')[1] ?? '', CSRF: csrf };
}

async function aRun(way: Way): Promise<BenchRun> {
  make('lun', 'create', `b-${way}`, '--size', '16M');
  const body = { lun: `b-${way}`, load: { seconds: 600 } };
  const answer = await fetch(`${daemon.url}/api/v1/bench/runs`, { method: 'POST', headers: { authorization: `Bearer ${daemon.token}`, 'content-type': 'application/json' }, body: JSON.stringify(body) });
  assert.ok(answer.ok, await answer.text());
  const running = async () => (await read<BenchRun[]>('bench/runs')).find((run) => run.state === 'running');
  await until('the run goes on', async () => (await running()) !== undefined);
  return (await running()) as BenchRun;
}

/** As the dialog finds it: what has a plan is asked for it. */
async function isForced(change: Change): Promise<boolean> {
  if (!change.plans) return false;
  const answer = await fetch(`${daemon.url}/api/v1/${change.path}?dry_run=true`, {
    method: change.method,
    headers: { authorization: `Bearer ${daemon.token}`, 'content-type': 'application/json' },
    ...(change.body === undefined ? {} : { body: JSON.stringify(change.body) }),
  });
  const plan = (await answer.json()) as { refusal?: string; confirm?: string };
  return changes.isForced(change, changes.confirmation(change, plan.refusal, plan.confirm), plan.refusal ?? plan.confirm);
}

/** What a form leaves out of a line: files, and that it is asked for a password. */
const lineOf = (change: Change, forced: boolean) =>
  changes.shownLine(change, forced).replace('--url-file FILE', `--url-file ${hookFile}`).replaceAll('FILE', secret).replace(/ --password(?= |$)/, ` --password-file ${secret}`).replace(/^causeway user create .*/, `$& --password-file ${secret}`);

/** And out of a call: the secret that hides there. */
function callOf(change: Change, forced: boolean): string {
  const shown = changes.curl(change, daemon.url, forced);
  const old = shown.replace('"old":"…"', `"old":"${PASSWORD}"`).replace('"new":"…"', `"new":"${LATER}"`).replace('"url":"…"', `"url":"${HOOK}"`);
  return `${old.replaceAll('…', PASSWORD)} -sS -w '\\n%{http_code}'`;
}

function run(text: string): { code: number | null; out: string } {
  const env = { ...process.env, ...login, PATH: `${dirname(PROGRAM)}:${process.env['PATH']}`, TOKEN: daemon.token, CAUSEWAY_API: `unix:${daemon.dir}/api.sock` };
  const done = spawnSync('bash', ['-c', text], { encoding: 'utf8', env, input: '' });
  return { code: done.status, out: done.stdout + done.stderr };
}

/** The call as a question: whatever stands in its address is taken by a shell as it is. */
const asked = (call: string) => call.replace(/'?(http:\/\/[^ ']*)'?/, (_, to: string) => `'${to}${to.includes('?') ? '&' : '?'}dry_run=true'`);

async function follow({ name, change, refused, then, dry }: Step, way: Way): Promise<void> {
  const made = await change(way);
  const forced = await isForced(made);
  const text = way === 'line' ? lineOf(made, forced) + (dry ? ' --dry-run' : '') : callOf(made, forced);
  const { code, out } = run(dry && way === 'call' ? asked(text) : text);
  const says = `${name}: ${text}\n${out}`;
  const status = Number(out.trim().split('\n').at(-1));
  if (refused) assert.ok(out.includes(refused), says);
  else if (way === 'line') assert.equal(code, 0, says);
  else assert.ok(status >= 200 && status < 300, says);
  await then?.(way);
}

describe('what forms show', () => {
  before(async () => {
    await daemon.start();
    writeFileSync(secret, PASSWORD, { mode: 0o600 });
    writeFileSync(hookFile, HOOK, { mode: 0o600 });
    make('alert', 'rule', 'set', 'host_single_path', '--hold', '0');
  });
  after(() => daemon.stop());

  it('is run here for every change that a form makes', () => {
    const lib = resolve(import.meta.dirname, '../src/lib');
    const sources = readdirSync(lib).filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts')).map((file) => readFileSync(join(lib, file), 'utf8'));
    const found = sources.flatMap((text) =>
      text.split(/^(?=export )/m).flatMap((part) => (/\bmethod: '(POST|PUT|PATCH|DELETE)'/.test(part) ? (/^export (?:function|const) (\w+)/.exec(part)?.[1] ?? part.slice(0, 60)) : [])),
    );
    const here = new Set([...STEPS.map(({ name }) => name), ...Object.keys(ELSEWHERE)]);
    assert.deepEqual(found.toSorted(), [...here].toSorted());
  });

  for (const way of ['line', 'call'] as const) {
    for (const [at, one] of STEPS.entries()) {
      it(`${way} ${at}, ${one.name}, does what the form does`, () => follow(one, way));
    }
  }
});
