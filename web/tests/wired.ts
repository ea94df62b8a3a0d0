// A node as the book shows it: the daemon of a test, behind a proxy that tells of two storage networks with cards and
// switches instead of this machine's loopback, of paths and ports as they are in a rack, and of disks with their alerts.
// Figures, sessions and events are the daemon's own.

import { readFileSync } from 'node:fs';
import { request, type IncomingMessage } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { Alert, Certificate, DiskVerdict, Refusal, Session, Severity, Status } from '../src/api/types.ts';
import type { History } from '../src/live/past.svelte.ts';
import type { Daemon } from './daemon.ts';
import { report } from './made_up.ts';

/** Of each host, the names of its NICs and the card of each: one card for all is what a loss of it shows. */
const HOSTS: Record<string, { nics: [string, string]; cards: [string, string] }> = {
  esx01: { nics: ['vmnic2', 'vmnic3'], cards: ['0000:3b:00', '0000:5e:00'] },
  esx02: { nics: ['vmnic2', 'vmnic3'], cards: ['0000:3b:00', '0000:5e:00'] },
  web: { nics: ['ens1f0', 'ens1f1'], cards: ['0000:17:00', '0000:17:00'] },
  lab: { nics: ['enp1s0', 'enp2s0'], cards: ['0000:01:00', '0000:02:00'] },
};
const SWITCHES = ['switch-a', 'switch-b'];
const SPEED = 25e9;
const MTU = 9000;
const KEEPS = 'content-type etag retry-after location set-cookie'.split(' ');

/** 0 or 1: the network of an address as the daemon has it. */
const networkOf = (address: string) => Number(address.split('.')[2]) - 1;

function sessions(all: Session[]): Session[] {
  return all.map((one) => {
    const { nics, cards } = HOSTS[one.host] ?? { nics: ['eth0', 'eth1'], cards: ['0000:02:00', '0000:03:00'] };
    const at = networkOf(one.from);
    const nic = { name: nics[at] ?? 'eth0', card: cards[at] ?? '', bits_per_second: SPEED, links: 1, mtu: MTU, planned: one.nic?.planned ?? true };
    // A path that crosses says nothing of the network in which its portal is.
    return { ...one, nic: at === networkOf(one.portal) ? { ...nic, fabric: SWITCHES[at] ?? '' } : nic };
  });
}

function status(one: Status, alerts: Alert[]): Status {
  const nics = [0, 1].map((at) => ({
    name: `ens${at + 1}f0`, card: ['0000:3b:00', '0000:af:00'][at] ?? '', bits_per_second: SPEED, links: 1, mtu: MTU, carrier: true,
    addresses: [{ address: `127.0.${at + 1}.1`, network: `127.0.${at + 1}.0/24` }],
  }));
  const firing = (severity: Severity) => alerts.filter((alert) => alert.state === 'firing' && alert.severity === severity).length;
  return { ...one, nics, alerts: { ...one.alerts, critical: one.alerts.critical + firing('critical'), warning: one.alerts.warning + firing('warning') } };
}

/** As the daemon has it (`manifest::disks`). */
const SEVERITIES: Record<DiskVerdict, Severity> = { failing: 'critical', replace_soon: 'warning', watch: 'info', well: 'info', unknown: 'info' };

/** One for each finding of a disk or a bay, as the rule `device_health` makes them. */
function alertsOfDisks(): Alert[] {
  const { disks, bays, at } = report();
  // A disk that is gone is named by its bay.
  const found = [
    ...disks.filter((disk) => disk.smart !== 'missing').flatMap((disk) =>
      (disk.findings ?? []).map(({ verdict, cause, next_step }) => ({ kind: 'disk', object: disk.id, severity: SEVERITIES[verdict], cause: `disk ${disk.id} is ${disk.health === 'replace_soon' ? 'to be replaced soon' : disk.health}: ${cause}`, next_step }))),
    ...bays.flatMap(({ name, finding }) => (finding ? [{ kind: 'bay', object: name, severity: SEVERITIES[finding.verdict], cause: finding.cause, next_step: finding.next_step }] : [])),
  ];
  const fired = new Date(Date.parse(at ?? '') - 3_600_000).toISOString();
  return found.map((one, i): Alert => ({
    id: 101 + i, state: 'firing', rule: 'device_health', title: 'A disk is failing, worn or gone from its bay', ...one, doc: '', fired, steps: [{ at: fired, what: 'fired' }],
  }) as Alert);
}

/** QEMU's initiator comes from wherever this machine likes. */
const refusals = (all: Refusal[]): Refusal[] => all.map((one) => ({ ...one, from: one.from.replace('127.0.0.1:', '127.0.1.77:') }));

const certificate = (one: Certificate): Certificate => ({ ...one, names: ['san-a.example', '10.0.0.1'], issuer: 'CN=san-a.example' });

/** The answers that are told otherwise, by the path below /api/v1/. */
const TOLD: Record<string, (body: never) => unknown> = {
  sessions,
  refusals,
  certificate,
  status: (one: Status) => status(one, alertsOfDisks()),
  alerts: (all: Alert[]) => [...alertsOfDisks(), ...all],
  disks: () => report().disks,
  disk_report: () => report(),
};

export interface Wired {
  /** As the page shows it, and where it is. */
  url: string;
  at: string;
  close: () => void;
}

/** What goes over a NIC of the node is what all sessions have, by the part of this network. */
const OF_NIC = /object=nic(?::|%3A)ens([12])f0/;
const PARTS = [0.57, 0.43];

const ofNic = (at: number) => (one: History) => ({
  ...one, lines: one.lines.map((line) => ({ ...line, mean: line.mean.map((value) => value && value * (PARTS[at] ?? 1)) })),
});

/** Where an administrator reaches the API, and from where. */
const API = 'https://10.0.0.1:8480';
const ADMIN = '10.0.0.9';
const PORT = 3260;

/** Documents of this daemon as those of a node in a rack, and requests the other way. */
function translation(daemon: Daemon): { seemly: (text: string) => string; back: (text: string) => string } {
  const { host } = new URL(daemon.url);
  // Over plain http it is for programs of the node alone: it is told without.
  const plain = new RegExp(`\\\\?"(?:http://)?${host.replaceAll('.', '\\.')}\\\\?",\\s*`, 'g');
  const port = new RegExp(`(:|port\\\\?"?\\s*[=:]\\s*)${daemon.port}\\b`, 'g');
  return {
    seemly: (text) => text
      .replaceAll(daemon.dir, '/var/lib/causeway')
      .replace(plain, '')
      .replaceAll(daemon.secureUrl, API)
      .replaceAll(daemon.url, API)
      .replace(port, `$1${PORT}`)
      .replace(/\b127\.0\.([12])\.(\d+)/g, '10.0.$1.$2')
      // But what node.toml is said to take.
      .replace(/\b127\.0\.0\.1\b(?!:8480)/g, ADMIN),
    back: (text) => text
      .replaceAll(`:${PORT}`, `:${daemon.port}`)
      .replace(/\b10\.0\.([12])\.(\d+)/g, '127.0.$1.$2')
      .replace(OF_NIC, 'object=target%3Avms'),
  };
}

/** Portals are where portals are, and the API where an administrator reaches it. */
export async function wired(daemon: Daemon): Promise<Wired> {
  const { seemly, back } = translation(daemon);
  const state = join(daemon.dir, 'state');
  const served = { cert: readFileSync(join(state, 'api-cert.pem')), key: readFileSync(join(state, 'api-key.pem')) };

  const server: Server = createServer(served, (asked, answer) => {
    const to = new URL(daemon.url);
    const headers = { ...asked.headers, host: to.host, 'accept-encoding': 'identity' };
    if (asked.headers.origin) headers.origin = daemon.url;
    delete headers['content-length'];
    const { pathname } = new URL(asked.url ?? '/', daemon.url);
    const nic = OF_NIC.exec(asked.url ?? '');
    const told = nic ? ofNic(Number(nic[1]) - 1) : asked.method === 'GET' ? TOLD[pathname.replace('/api/v1/', '')] : undefined;
    const onward = request({ host: to.hostname, port: to.port, path: back(asked.url ?? '/'), method: asked.method, headers }, (come: IncomingMessage) => {
      const stays = Object.fromEntries(Object.entries(come.headers).filter(([name]) => KEEPS.includes(name) || name === 'content-security-policy'));
      answer.writeHead(come.statusCode ?? 502, stays);
      const kind = come.headers['content-type'] ?? '';
      if (!/json|event-stream|text\//.test(kind)) return void come.pipe(answer);
      if (/event-stream/.test(kind)) return stream(come, (line) => answer.write(seemly(line)), () => answer.end());
      let body = '';
      come.setEncoding('utf8').on('data', (part: string) => (body += part)).on('end', () => {
        const text = told && come.statusCode === 200 ? JSON.stringify(told(JSON.parse(body) as never)) : body;
        answer.end(seemly(text));
      });
    });
    onward.on('error', () => answer.destroy());
    answer.on('close', () => onward.destroy());
    let sent = '';
    asked.setEncoding('utf8').on('data', (part: string) => (sent += part)).on('end', () => onward.end(back(sent)));
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  return {
    url: 'https://san-a.example',
    at: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** Whole lines: an address may come in two parts. */
function stream(come: IncomingMessage, line: (text: string) => void, end: () => void): void {
  let rest = '';
  come.setEncoding('utf8').on('data', (part: string) => {
    const all = (rest + part).split('\n');
    rest = all.pop() ?? '';
    if (all.length > 0) line(`${all.join('\n')}\n`);
  }).on('end', end);
}
