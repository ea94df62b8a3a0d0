// Pictures of every screen, at three widths in both themes: web/tests/screenshots.ts DIRECTORY [main]
// main: those that the book has. ONLY=lun,topology: these screens; WIDTHS=390: this width; WAIT=5000: milliseconds for
// the charts to fill.

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Browser } from './browser.ts';
import { Daemon } from './daemon.ts';
import { withDisks } from './made_up.ts';
import { furnish } from './furnish.ts';
import { withFewColours } from './palette.ts';
import { enter } from './steps.ts';

const SCREENS: [string, string][] = [
  ['overview', '/?span=60'],
  ['topology', '/topology?lost=portal%3A127.0.1.1%3APORT'],
  ['luns', '/luns'],
  ['lun', '/luns/vm01?span=60'],
  ['lun-hosts', '/luns/vm01?show=hosts'],
  ['lun-settings', '/luns/vm01?show=settings'],
  ['lun-connect', '/luns/vm01?show=connect'],
  ['lun-set', '/luns/vm01?do=set'],
  ['hosts', '/hosts'],
  ['paths', '/hosts?view=paths'],
  ['refused', '/hosts?view=refused'],
  ['host', '/hosts/esx01'],
  ['host-set', '/hosts/esx01?do=set'],
  ['targets', '/targets'],
  ['target', '/targets/vms'],
  ['portals', '/targets?view=portals'],
  ['pools', '/pools'],
  ['integrity', '/integrity'],
  ['bench', '/bench'],
  ['bench-run', '/bench/1'],
  ['bench-start', '/bench?do=run&lun=vm01'],
  ['bench-compare', '/bench/compare?a=1&b=2'],
  ['lab', '/lab/BED'],
  ['tray', '/luns/vm01?span=60&tray=jobs'],
  ['jobs', '/jobs'],
  ['disks', '/disks'],
  ['disk', '/disks/ZC10003'],
  ['events', '/events'],
  ['audit', '/audit'],
  ['audit-entry', '/audit?kind=lun&result=done&entry=ENTRY'],
  ['alerts', '/alerts'],
  ['alert', '/alerts/1'],
  ['alert-rules', '/alerts?show=rules'],
  ['alert-rule', '/alerts?show=rules&rule=pool_filling&do=set'],
  ['alert-silence', '/alerts/1?do=mute'],
  ['receivers', '/alerts?show=receivers'],
  ['receiver-add', '/alerts?show=receivers&do=add'],
  ['account', '/settings/account'],
  ['users', '/settings/users'],
  ['tokens', '/settings/tokens'],
  ['certificate', '/settings/certificate'],
  ['node', '/settings/node'],
  ['about', '/settings/about'],
  ['first-password', '/first-run?step=password'],
  ['first-portals', '/first-run?step=portals'],
  ['first-connect', '/first-run?step=connect'],
];
/** Those of the book: each of the sidebar, a LUN, and the first steps. */
const MAIN = [
  'overview', 'topology', 'luns', 'lun', 'paths', 'targets', 'pools', 'disks', 'integrity', 'bench-run', 'lab', 'alerts', 'events', 'audit', 'jobs', 'users', 'first-portals',
];
const WIDTHS: [number, number][] = [[1280, 800], [1920, 1080], [390, 844]];
const A_MINUTE = 60_000;
const DRAWN_MS = 1_100;

const listed = (name: string) => process.env[name]?.split(',');
const wanted = (list: readonly string[] | undefined, one: string) => list === undefined || list.includes(one);

/** Two runs of the bench and a bed of the lab, where this daemon has them: the bed's number. */
async function measure(daemon: Daemon): Promise<string> {
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${daemon.token}` };
  const ask = async <T>(path: string, body?: unknown): Promise<T> => {
    const how = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) };
    return (await (await fetch(`${daemon.url}/api/v1/${path}`, { headers, ...how })).json()) as T;
  };
  for (const name of ['before', 'after']) {
    const load = { seconds: 20, warm_up_seconds: 2, outstanding: 4, iops_max: 4000 };
    const { run } = await ask<{ run?: { id: number } }>('bench/runs', { name, memory: '64MiB', load });
    while (run && (await ask<{ state: string }>(`bench/runs/${run.id}`)).state === 'running') await new Promise((done) => setTimeout(done, 500));
  }
  const { topologies = [], may_start } = await ask<{ topologies?: { id: string }[]; may_start?: boolean }>('lab');
  if (!may_start) return '';
  return String((await ask<{ id?: number }>('lab/beds', { topology: topologies[0]?.id })).id ?? '');
}

async function take(daemon: Daemon, dir: string, only: readonly string[] | undefined): Promise<void> {
  mkdirSync(dir, { recursive: true });
  const browser = await Browser.open(daemon.url);
  await withDisks(browser.page);
  await enter(browser, daemon.token);
  const entries = JSON.parse(daemon.run('audit', 'ls', '--object', 'lun:vm02', '-o', 'json')) as { id: number }[];
  const entry = String(entries.at(-1)?.id ?? 1);
  const bed = await measure(daemon);
  await browser.page.waitForTimeout(Number(process.env['WAIT'] ?? A_MINUTE));
  for (const [name, path] of SCREENS) {
    if (!wanted(only, name)) continue;
    await browser.go(path.replace('PORT', String(daemon.port)).replace('ENTRY', entry).replace('BED', bed));
    await browser.settled();
    for (const [width, height] of WIDTHS) {
      if (!wanted(listed('WIDTHS'), String(width))) continue;
      await browser.page.setViewportSize({ width, height });
      for (const colorScheme of ['dark', 'light'] as const) {
        await browser.page.emulateMedia({ colorScheme });
        // Charts are drawn anew by the next figures at the latest.
        await browser.page.waitForTimeout(DRAWN_MS);
        writeFileSync(join(dir, `${name}-${width}-${colorScheme}.png`), withFewColours(await browser.page.screenshot()));
      }
    }
  }
  await browser.close();
  browser.well();
}

const [dir, which] = process.argv.slice(2);
if (!dir || (which && which !== 'main')) throw new Error('usage: screenshots.ts DIRECTORY [main]');
const daemon = new Daemon();
await daemon.start();
try {
  furnish(daemon);
  daemon.run('lun', 'set', 'vm02', 'limit.iops=9000', 'shares=20');
  daemon.run('token', 'create', 'prometheus', '--role', 'viewer', '--days', '365');
  await take(daemon, dir, which ? MAIN : listed('ONLY'));
} finally {
  await daemon.stop();
}
