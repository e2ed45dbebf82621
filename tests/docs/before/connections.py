from redis import CredentialProvider

provider = CredentialProvider()


async def handle(job): ...
