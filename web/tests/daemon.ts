// A real daemon in a directory of its own, with load from real initiators.

import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { PATIENCE_MS } from './patience.ts';

export const PROGRAM = resolve(process.env['CAUSEWAY_BIN'] ?? 'target/debug/causeway');
/** Two networks, as two switches make them; all of 127/8 is this machine. */
export const PORTALS = ['127.0.1.1', '127.0.2.1'];

/** Ports that nobody has now. */
async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer());
  const ports = await Promise.all(
    servers.map((server) => new Promise<number>((done) => server.listen(0, '127.0.0.1', () => done((server.address() as { port: number }).port)))),
  );
  await Promise.all(servers.map((server) => new Promise((done) => server.close(done))));
  return ports;
}

/** An address in the network of a portal. */
const from = (portal: string, number: number) => portal.replace(/1$/, String(number));

interface Place {
  host: string;
  port: number;
}

/** A cable: what comes in at one end comes out at the other, until it is cut. */
export class Relay {
  readonly at: Place;
  private readonly to: Place;
  private server: Server | undefined;
  private readonly sockets = new Set<Socket>();
  /** Bytes a second of each connection; 0: as they come. */
  private pace = 0;

  constructor(to: Place, at: Place) {
    this.to = to;
    this.at = at;
  }

  mend(): Promise<void> {
    const server = createServer((inner) => {
      const outer = connect({ ...this.to, localAddress: this.at.host });
      for (const socket of [inner, outer]) {
        this.sockets.add(socket);
        socket.on('error', () => socket.destroy());
        socket.on('close', () => this.sockets.delete(socket));
      }
      inner.on('data', (data) => this.pass(inner, outer, data));
      inner.on('end', () => outer.end());
      outer.pipe(inner);
    });
    this.server = server;
    return new Promise((done) => server.listen(this.at.port, this.at.host, done));
  }

  /** What goes to the node is no faster, on each connection. */
  slow(bytesPerSecond: number): void {
    this.pace = bytesPerSecond;
  }

  private pass(inner: Socket, outer: Socket, data: Buffer): void {
    outer.write(data);
    if (this.pace === 0) return;
    inner.pause();
    setTimeout(() => inner.resume(), (data.length / this.pace) * 1000);
  }

  cut(): void {
    this.server?.close();
    for (const socket of this.sockets) socket.destroy();
  }
}

export class Daemon {
  readonly dir = mkdtempSync(join(tmpdir(), 'causeway-page-'));
  url = '';
  port = 0;
  token = '';
  /** Of whoever `furnish` makes: nobody else knows it. */
  readonly password = randomBytes(12).toString('hex');
  private api = 0;
  private secure = 0;
  private daemon: ChildProcess | undefined;
  private readonly others: ChildProcess[] = [];
  private readonly relays: Relay[] = [];

  private readonly https: boolean;
  private readonly more: string;
  private readonly ofApi: string;

  /** `https`: it is served with https as well; `more` of its node.toml, and of the section of the API there. */
  constructor(https = false, more = '', ofApi = '') {
    this.https = https;
    this.more = more;
    this.ofApi = ofApi;
  }

  get secureUrl(): string {
    return `https://127.0.0.1:${this.secure}`;
  }

  get pid(): number {
    return this.daemon?.pid ?? 0;
  }

  /** A node with two portals and a pool with a journal. */
  async start(): Promise<void> {
    if (this.api === 0) {
      const [api = 0, port = 0, secure = 0] = await freePorts(3);
      this.api = api;
      this.secure = this.https ? secure : 0;
      this.port = port;
      this.url = `http://127.0.0.1:${api}`;
      mkdirSync(join(this.dir, 'pool'));
      writeFileSync(join(this.dir, 'node.toml'), this.config());
    }
    this.daemon = spawn(PROGRAM, ['serve', '--config', join(this.dir, 'node.toml')], { stdio: ['ignore', 'ignore', 'pipe'] });
    let log = '';
    this.daemon.stderr?.on('data', (text: Buffer) => (log = (log + text.toString()).slice(-4000)));
    const until = Date.now() + PATIENCE_MS;
    while (!(await fetch(`${this.url}/readyz`).then((answer) => answer.ok, () => false))) {
      if (Date.now() > until || this.daemon.exitCode !== null) throw new Error(`the daemon did not start:\n${log}`);
      await new Promise((done) => setTimeout(done, 50));
    }
    this.token = readFileSync(join(this.dir, 'state', 'api.token'), 'utf8').trim();
  }

  /** As a power cut does. */
  async kill(): Promise<void> {
    const ended = new Promise((done) => this.daemon?.once('exit', done));
    this.daemon?.kill('SIGKILL');
    await ended;
  }

  /** In peace: what is in the journal is destaged. */
  async end(): Promise<void> {
    const ended = new Promise((done) => this.daemon?.once('exit', done));
    this.daemon?.kill('SIGTERM');
    await ended;
  }

  async stop(): Promise<void> {
    for (const one of this.others) one.kill('SIGKILL');
    for (const one of this.relays) one.cut();
    // Not in peace: what is still in the journal need not be destaged, for nobody reads it.
    if (this.daemon?.exitCode === null && this.daemon.signalCode === null) await this.kill();
    rmSync(this.dir, { recursive: true, force: true });
  }

  /** The command line, which must succeed. */
  run(...args: string[]): string {
    const done = spawnSync(PROGRAM, args, { encoding: 'utf8', env: { ...process.env, CAUSEWAY_API: `unix:${this.dir}/api.sock` } });
    if (done.status !== 0) throw new Error(`causeway ${args.join(' ')}: ${done.stderr}`);
    return done.stdout;
  }

  /** A way to a portal, to the second one where nothing is said, that can be cut. */
  async relay(number: number, network: 1 | 2 = 2): Promise<Relay> {
    const [port = 0] = await freePorts(1);
    const relay = new Relay({ host: PORTALS[network - 1] ?? '', port: this.port }, { host: `127.0.${network}.${number}`, port });
    await relay.mend();
    this.relays.push(relay);
    return relay;
  }

  /** Load from an initiator until the daemon is stopped; `number`: the last part of its addresses, one in each network. */
  load(initiator: string, number: number, networks: 1 | 2, target: string, lun: number, ...options: string[]): void {
    const portals = PORTALS.slice(0, networks);
    this.bench(initiator, portals.map((portal) => from(portal, number)), portals.map((portal) => `${portal}:${this.port}`), target, lun, ...options);
  }

  /** From each of its addresses to the portal of the same network, and to no other: a load of its own for each. */
  loadStraight(initiator: string, number: number, target: string, lun: number, ...options: string[]): void {
    for (const portal of PORTALS) this.bench(initiator, [from(portal, number)], [`${portal}:${this.port}`], target, lun, ...options);
  }

  /** The same over the first portal and a relay. */
  loadOver(relay: Relay, initiator: string, number: number, target: string, lun: number, ...options: string[]): void {
    this.bench(initiator, PORTALS.map((portal) => from(portal, number)), [`${PORTALS[0]}:${this.port}`, `${relay.at.host}:${relay.at.port}`], target, lun, ...options);
  }

  /** The same over relays alone, one in each network. */
  loadBy(relays: [Relay, Relay], initiator: string, number: number, target: string, lun: number, ...options: string[]): void {
    this.bench(initiator, PORTALS.map((portal) => from(portal, number)), relays.map(({ at }) => `${at.host}:${at.port}`), target, lun, ...options);
  }

  private bench(initiator: string, own: string[], at: string[], target: string, lun: number, ...options: string[]): void {
    const nics = own.flatMap((one) => ['--from', one]);
    const url = `iscsi://${at.join(',')}/iqn.2026-11.io.causeway:${target}/${lun}`;
    // A small part of each LUN: a file that is written all over takes long to delete.
    const all = ['bench', '-b4K', '-t1', '-r', '-f16M', '-d3600', '--destroy', '--no-discover', '--initiator-name', initiator, ...nics, ...options, url];
    this.others.push(spawn(PROGRAM, all, { stdio: 'ignore' }));
  }

  private config(): string {
    return `schema = 1
[node]
name = "san-a"
state_dir = "state"
[[portal_group]]
name = "default"
tag = 1
listen = [ ${PORTALS.map((ip) => `{ ip = "${ip}", port = ${this.port} }`).join(', ')} ]
[[pool]]
name = "default"
path = "pool"
journal = "journal"
journal_size = "64MiB"
[api]
listen = ["unix:api.sock", "127.0.0.1:${this.api}"${this.secure ? `, "${this.secureUrl}"` : ''}]
${this.ofApi}
[[alert_command]]
name = "pager"
argv = ["/bin/true"]
${this.more}`;
  }
}
