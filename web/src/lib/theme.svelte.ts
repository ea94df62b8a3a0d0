// Dark or light: as the system is, until somebody chooses.

export type Theme = 'dark' | 'light';
const KEY = 'theme';

class Themes {
  theme = $state<Theme>('dark');
  private readonly system = matchMedia('(prefers-color-scheme: light)');

  constructor() {
    this.system.addEventListener('change', () => this.apply());
    this.apply();
  }

  toggle(): void {
    const other = this.theme === 'dark' ? 'light' : 'dark';
    // Back to what the system has is back to following it.
    if (other === this.ofSystem()) localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, other);
    this.apply();
  }

  private ofSystem(): Theme {
    return this.system.matches ? 'light' : 'dark';
  }

  private apply(): void {
    const chosen = localStorage.getItem(KEY);
    this.theme = chosen === 'dark' || chosen === 'light' ? chosen : this.ofSystem();
    document.documentElement.dataset['theme'] = this.theme;
  }
}

export const themes = new Themes();
