// The address is the state of the page: what is shown, sorted, filtered and open stands in it.

/** What lies over a screen: closing it goes back to the screen, which stays the one before it. */
const OVER = ['do', 'tray'];

class Router {
  path = $state(location.pathname);
  query = $state.raw(new URLSearchParams(location.search));
  /** What comes after the step back that the browser has not taken yet. */
  private then: (() => void) | undefined;
  private goesBack = false;

  constructor() {
    addEventListener('popstate', () => this.cameBack());
  }

  go(to: string, replace = false): void {
    const url = new URL(to, location.href);
    if (url.origin !== location.origin) return;
    const moved = url.pathname !== this.path;
    if (this.goesBack) this.then = () => this.write(url, replace);
    else if (OVER.some((name) => this.query.has(name)) && url.href === before()) {
      this.goesBack = true;
      history.back();
    } else this.write(url, replace);
    this.show(url);
    if (moved) scrollTo(0, 0);
  }

  /**
   * Changes parameters of the address; `undefined` and '' take one away. Back undoes it, but for `replace`: what is
   * typed letter by letter.
   */
  set(values: Record<string, string | undefined>, replace = false): void {
    const query = new URLSearchParams(this.query);
    for (const [name, value] of Object.entries(values)) {
      if (value) query.set(name, value);
      else query.delete(name);
    }
    this.ask(query, replace);
  }

  /** Whether a parameter that has many values has this one. */
  holds(name: string, value: string): boolean {
    return this.query.getAll(name).includes(value);
  }

  /** Gives it to the parameter, or takes it away. */
  turn(name: string, value: string): void {
    const query = new URLSearchParams(this.query);
    if (this.holds(name, value)) query.delete(name, value);
    else query.append(name, value);
    this.ask(query, false);
  }

  get(name: string): string {
    return this.query.get(name) ?? '';
  }

  /** The parts of the path, decoded. */
  get parts(): string[] {
    return this.path.split('/').filter(Boolean).map(decode);
  }

  /** Links of the page itself do not load it anew. */
  click(event: MouseEvent): void {
    if (event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    const link = event.target instanceof Element ? event.target.closest('a') : undefined;
    const href = link?.getAttribute('href');
    if (!href?.startsWith('/') || href.startsWith('/api/') || link?.target) return;
    event.preventDefault();
    this.go(href);
  }

  private ask(query: URLSearchParams, replace: boolean): void {
    const text = query.toString();
    this.go(text ? `${this.path}?${text}` : this.path, replace);
  }

  /** Nobody goes back to a dialog: what comes after it takes its place. */
  private write(url: URL, replace: boolean): void {
    const now = new URL(location.href);
    if (url.href === now.href) return;
    if (replace || now.searchParams.has('do')) history.replaceState(history.state, '', url);
    else history.pushState({ before: now.href }, '', url);
  }

  private cameBack(): void {
    const { then } = this;
    this.goesBack = false;
    this.then = undefined;
    then?.();
    this.show(new URL(location.href));
  }

  private show(url: URL): void {
    this.path = url.pathname;
    this.query = url.searchParams;
  }
}

/** The address that this one was opened from. */
function before(): string | undefined {
  return (history.state as { before?: string } | null)?.before;
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export const router = new Router();

/** The address of an object's page. */
export function to(kind: string, name: string): string {
  return `/${kind}/${encodeURIComponent(name)}`;
}
