// What is shown to a browser that the server does not know.
import { useSignal } from "@preact/signals";
import { isSignedOut, signIn } from "../wire/api";

export function SignIn({ onSignedIn }: { onSignedIn: () => void }) {
  const password = useSignal("");
  const words = useSignal("");
  if (!isSignedOut.value) return null;
  const submit = async (): Promise<void> => {
    words.value = "";
    try {
      await signIn({ username: "opencode", password: password.value });
      onSignedIn();
    } catch (error) {
      words.value = error instanceof Error ? error.message : String(error);
    }
  };
  return (
    <div class="sign-in">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void submit();
        }}
      >
        <h1>Open this page with its link</h1>
        <p>
          <code>codeloop web</code> prints a link that signs this browser in, once. What you typed is kept.
        </p>
        <label>
          Or enter the server's password
          <input class="field" type="password" autocomplete="current-password" value={password.value} onInput={(event) => (password.value = event.currentTarget.value)} />
        </label>
        {words.value && (
          <p class="failure" role="alert">
            {words.value}
          </p>
        )}
        <button type="submit" class="button primary" disabled={!password.value}>
          Sign in
        </button>
      </form>
    </div>
  );
}
