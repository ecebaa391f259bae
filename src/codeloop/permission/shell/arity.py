"""How many words of a command make it up: what an "always" of it would allow. Pure data."""

TWO = """
apt apt-get aws az brew bun bundle cargo cmake composer conda deno docker dotnet flutter gcloud gem gh git glab go
gradle gradlew helm heroku hg just kubectl launchctl make mise mix mvn mvnw mypy nix npm npx nvm pdm php pip pip3 pipenv
pnpm podman poetry pre-commit pulumi rake rbenv ruff rustup sbt snap stack
svn swift systemctl task terraform tox turbo uv uvx vercel wrangler xcodebuild yarn zig
"""
THREE = """
aws ec2;aws iam;aws s3;aws s3api;az account;az group;az vm;bun run;bun x;cargo run;cargo test;composer run-script;
conda env;deno task;docker builder;docker buildx;docker compose;docker container;docker image;docker network;
docker system;docker volume;dotnet tool;
gcloud compute;gcloud container;gh api;gh issue;gh pr;gh release;gh repo;gh run;gh workflow;
git bisect;git config;git remote;git stash;git submodule;git worktree;go mod;go tool;go work;helm repo;kubectl config;
kubectl rollout;npm exec;npm run;npm run-script;npx tsx;nx run;pdm run;pip cache;pipenv run;pnpm dlx;pnpm exec;pnpm run;
podman compose;podman container;podman image;poetry run;poetry self;rustup component;rustup target;rustup toolchain;
swift package;terraform state;terraform workspace;uv pip;uv run;uv tool;yarn dlx;yarn run;yarn workspace
"""

TWO_WORDS = frozenset(TWO.split())
THREE_WORDS = frozenset(row.strip() for row in THREE.split(";"))


def leading_words(words: list[str]) -> list[str]:
    """Return the words that make up what a command is: `git commit`, `npm run build`, `ls`."""
    if " ".join(words[:2]) in THREE_WORDS and len(words) > 2:
        return words[:3]
    return words[: 2 if words[0] in TWO_WORDS else 1]
