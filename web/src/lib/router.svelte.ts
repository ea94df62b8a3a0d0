// The address is the state of the page: what is shown, sorted, filtered and open stands in it.

class Router {
  path = $state(location.pathname);
  query = $state.raw(new URLSearchParams(location.search));

  constructor() {
    addEventListener('popstate', () => this.read());
  }

  go(to: string, replace = false): void {
    const url = new URL(to, location.href);
    if (url.origin !== location.origin) return;
    const moved = url.pathname !== location.pathname;
    if (replace) history.replaceState(null, '', url);
    else history.pushState(null, '', url);
    this.read();
    if (moved) scrollTo(0, 0);
  }

  /** Changes parameters of the address; `undefined` and '' take one away. */
  set(values: Record<string, string | undefined>, replace = true): void {
    const query = new URLSearchParams(this.query);
    for (const [name, value] of Object.entries(values)) {
      if (value) query.set(name, value);
      else query.delete(name);
    }
    const text = query.toString();
    this.go(text ? `${this.path}?${text}` : this.path, replace);
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

  private read(): void {
    this.path = location.pathname;
    this.query = new URLSearchParams(location.search);
  }
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
