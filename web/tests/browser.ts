// The browser of the tests: Debian's Chromium, a new profile each time. What breaks the policy of contents, an error of
// the page and a request to anybody else fail the test.

import axe, { type RunOptions } from 'axe-core';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { extname, join } from 'node:path';
import assert from 'node:assert/strict';
import { chromium, type BrowserContext, type Page, type Request } from 'playwright-core';
import { PATIENCE_MS } from './patience.ts';

const CHROMIUM = process.env['CHROMIUM'] ?? '/usr/bin/chromium';
export const here = existsSync(CHROMIUM);

const ARGUMENTS = [
  '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update',
  '--disable-sync', '--force-color-profile=srgb', '--hide-scrollbars',
];

/** A name that leads to this machine; the browser holds such names for attacks. */
const mapped = (origin: string, at: string) => [`--host-resolver-rules=MAP ${new URL(origin).hostname} ${at}`, '--disable-features=BlockInsecurePrivateNetworkRequests,LocalNetworkAccessChecks'];

/** The page from this directory instead of from the program, while it is worked on: target/page after a build by vite. */
const FROM = process.env['PAGE_FROM'];
const KINDS: Record<string, string> = { '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml', '.woff2': 'font/woff2', '.html': 'text/html' };

async function serveFrom(context: BrowserContext, origin: string, dir: string): Promise<void> {
  const policy = (await context.request.get(origin)).headers()['content-security-policy'] ?? '';
  await context.route((url) => !url.pathname.startsWith('/api/'), (route) => {
    const path = join(dir, new URL(route.request().url()).pathname);
    const file = extname(path) && existsSync(path) ? path : join(dir, 'index.html');
    return route.fulfill({ body: readFileSync(file), headers: { 'content-type': KINDS[extname(file)] ?? '', 'content-security-policy': policy } });
  });
}

/** WCAG 2.2 AA. */
const TAGS = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'];

/** What axe cannot tell, and somebody has looked at: a rule, and why. */
const ACCEPTED: string[] = [
  // The band of the verdict: `contrast.test.ts` computes it.
  'color-contrast bgGradient',
  // What stands over the drawing of a map or a chart: it has the colours of all other text, on the same ground.
  'color-contrast imgNode',
  // Arrows: no text, and hidden from whoever hears the page.
  'color-contrast nonBmp',
  // Rows that the edge of their table cuts: the same ones stand whole above.
  'color-contrast elmPartiallyObscured',
  // The dialog of a restart, which stands inside a card: nothing lies over it, as elementsFromPoint says.
  'color-contrast bgOverlap',
  // What a mark of a chart says: it lies over the chart, on a ground of its own.
  'color-contrast elmPartiallyObscuring',
  // A field in it that is empty: fields have the colours of all text, as others have that are not.
  'color-contrast emptyValue',
];

/** So long a screen is waited for that never stops asking, in milliseconds. */
const SETTLED_MS = PATIENCE_MS / 4;

export class Browser {
  readonly page: Page;
  readonly wrong: string[] = [];
  private readonly context: BrowserContext;
  readonly profile: string;
  /** What was asked for and is not here; the stream of events never is. */
  private readonly pending = new Set<Request>();

  private constructor(context: BrowserContext, page: Page, profile: string, origin: string) {
    this.context = context;
    this.page = page;
    this.profile = profile;
    page.on('pageerror', (error) => this.wrong.push(`error in the page: ${error.message}`));
    page.on('console', (message) => {
      // The browser names every answer that is no success; tests ask for some of these.
      if (message.type() === 'error' && !message.text().startsWith('Failed to load resource')) this.wrong.push(message.text());
    });
    page.on('request', (request) => {
      if (request.resourceType() !== 'eventsource' && !request.url().includes('/events?topics=')) this.pending.add(request);
      if (!request.url().startsWith(origin) && !request.url().startsWith('blob:')) this.wrong.push(`a request to ${request.url()}`);
    });
    page.on('requestfinished', (request) => this.pending.delete(request));
    page.on('requestfailed', (request) => this.pending.delete(request));
  }

  /** Until all that a screen or a dialog asks for when it is opened is here and drawn. */
  async settled(quietMs = 40): Promise<void> {
    const until = Date.now() + SETTLED_MS;
    for (let quiet = Date.now(); Date.now() < until && Date.now() - quiet <= quietMs; ) {
      await this.page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done))));
      if (this.pending.size > 0) quiet = Date.now();
    }
  }

  /** `at`: where the host of the address is, with its port. */
  static async open(origin: string, theme: 'dark' | 'light' = 'dark', width = 1280, height = 800, at?: string): Promise<Browser> {
    const profile = mkdtempSync(join(tmpdir(), 'causeway-browser-'));
    const context = await chromium.launchPersistentContext(profile, {
      executablePath: CHROMIUM, headless: true, viewport: { width, height }, colorScheme: theme, args: [...ARGUMENTS, ...at ? mapped(origin, at) : []], baseURL: origin,
      reducedMotion: 'reduce',
      // The certificate of a test's daemon is its own.
      ignoreHTTPSErrors: true,
    });
    if (FROM) await serveFrom(context, at ? `${new URL(origin).protocol}//${at}` : origin, FROM);
    const page = context.pages()[0] ?? (await context.newPage());
    page.setDefaultTimeout(PATIENCE_MS);
    return new Browser(context, page, profile, origin);
  }

  /** Another address, without loading the page anew. */
  async go(path: string): Promise<void> {
    await this.page.evaluate((to) => {
      history.pushState(null, '', to);
      dispatchEvent(new PopStateEvent('popstate'));
    }, path);
  }

  /** What axe finds on what is shown, or on a part of it, in both themes; it stays in the dark one. */
  async axeInBoth(what: string, part?: string): Promise<string[]> {
    const found: string[] = [];
    for (const colorScheme of ['light', 'dark'] as const) {
      await this.page.emulateMedia({ colorScheme });
      await this.page.waitForFunction((theme) => document.documentElement.dataset['theme'] === theme, colorScheme);
      found.push(...(await this.axe(`${what}, ${colorScheme}`, part)));
    }
    return found;
  }

  /** The same in the theme that is shown, by WCAG 2.2 AA. What axe is made of stays in the page from one question to the next. */
  async axe(what: string, part?: string): Promise<string[]> {
    if (!(await this.page.evaluate(() => 'axe' in window))) await this.page.evaluate(axe.source);
    const found = await this.page.evaluate(async ([part, tags, accepted]) => {
      const { axe } = window as unknown as { axe: typeof import('axe-core') };
      const options: RunOptions = {
        runOnly: { type: 'tag', values: tags },
        // The experimental rule that a name has the words which are seen (WCAG 2.5.3).
        rules: { 'label-content-name-mismatch': { enabled: true } },
        resultTypes: ['violations', 'incomplete'],
      };
      const { violations, incomplete } = await axe.run(part ? { include: [part] } : document, options);
      const said = (some: typeof violations) => some.map((one) => {
        const nodes = one.nodes.slice(0, 4).map((node) => `${node.html.slice(0, 160)} ${node.any[0]?.message ?? ''}`);
        return `${one.id}: ${one.help}: ${nodes.join(' | ')}`;
      });
      // Where it cannot tell, it says why: what is not known to be well is to be looked at.
      const unsure = incomplete.flatMap((one) => {
        const nodes = one.nodes.filter((node) => !accepted.includes(`${one.id} ${(node.any[0]?.data as { messageKey?: string } | null)?.messageKey ?? ''}`));
        return nodes.length ? [{ ...one, nodes, help: `cannot be told (${(nodes[0]?.any[0]?.data as { messageKey?: string } | null)?.messageKey ?? ''})` }] : [];
      });
      return said([...violations, ...unsure]);
    }, [part, TAGS, ACCEPTED] as const);
    return found.map((one) => `${what}: ${one}`);
  }

  async close(): Promise<void> {
    await this.context.close();
    rmSync(this.profile, { recursive: true, force: true });
  }

  /** That nothing went wrong in the page. */
  well(): void {
    assert.deepEqual(this.wrong, [], 'what went wrong in the page');
  }
}
